-- Erasure certificates: a new table only, so that nothing that is there has to be rewritten. No REFERENCES: they
-- outlive their node.

CREATE TABLE certificate (
    id     TEXT PRIMARY KEY NOT NULL CHECK (id = json_extract(doc, '$.id')),
    doc    TEXT NOT NULL,
    node   TEXT NOT NULL AS (json_extract(doc, '$.node')) STORED,
    number INTEGER NOT NULL AS (json_extract(doc, '$.number')) STORED,
    UNIQUE (node, number)
) STRICT;
