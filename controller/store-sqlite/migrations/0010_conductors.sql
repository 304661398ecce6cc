-- Controllers that have reported themselves.
CREATE TABLE conductor (
    hostname TEXT PRIMARY KEY NOT NULL CHECK (hostname = json_extract(doc, '$.hostname')),
    doc      TEXT NOT NULL
) STRICT;
