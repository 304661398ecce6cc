-- Machines that were booted although no node is known for them.
CREATE TABLE discovered_machine (
    id        TEXT PRIMARY KEY NOT NULL CHECK (id = json_extract(doc, '$.id')),
    doc       TEXT NOT NULL,
    booted_at INTEGER NOT NULL AS (json_extract(doc, '$.booted_at')) STORED
) STRICT;
