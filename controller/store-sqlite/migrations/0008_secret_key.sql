-- With which key the secrets in the documents of nodes and resources are encrypted. No row: they are not encrypted yet.
CREATE TABLE secret_key (
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    -- A known text, encrypted: only the right key decrypts it.
    check_value TEXT NOT NULL,
    -- Whether the file was written anew since, without what free pages held before.
    vacuumed      INTEGER NOT NULL CHECK (vacuumed IN (0, 1))
) STRICT;
