-- The heads of all chains of certificates, in the order in which they were stored; each line names the digest of the one
-- before it (docs/certificate.md). Certificates of before are added when the database is opened.
CREATE TABLE certificate_log (
    seq         INTEGER PRIMARY KEY NOT NULL CHECK (seq = json_extract(line, '$.index')),
    line        TEXT NOT NULL,
    certificate TEXT NOT NULL UNIQUE AS (json_extract(line, '$.certificate')) STORED REFERENCES certificate (id)
) STRICT;

CREATE TRIGGER certificate_log_is_not_changed BEFORE UPDATE ON certificate_log
BEGIN SELECT RAISE(ABORT, 'the log of certificates is never changed'); END;

CREATE TRIGGER certificate_log_is_not_cut BEFORE DELETE ON certificate_log
BEGIN SELECT RAISE(ABORT, 'the log of certificates is never cut'); END;

-- Changes of the key that signs certificates, each signed by the old and by the new key.
CREATE TABLE certificate_key_change (
    seq INTEGER PRIMARY KEY NOT NULL,
    doc TEXT NOT NULL UNIQUE
) STRICT;
