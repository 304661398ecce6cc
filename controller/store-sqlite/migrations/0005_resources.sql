-- Chassis, port groups, volumes, allocations, runbooks, inspection rules: one new table for all of them, so that
-- nothing that is there has to be rewritten.

CREATE TABLE resource (
    kind       TEXT NOT NULL CHECK (kind = json_extract(doc, '$.kind')),
    uuid       TEXT NOT NULL CHECK (uuid = json_extract(doc, '$.uuid')),
    doc        TEXT NOT NULL,
    version    INTEGER NOT NULL AS (json_extract(doc, '$.version')) STORED,
    name       TEXT AS (json_extract(doc, '$.name')) STORED,
    "key"      TEXT AS (json_extract(doc, '$.key')) STORED,
    node       TEXT REFERENCES node (uuid) ON DELETE CASCADE AS (json_extract(doc, '$.node')) STORED,
    created_at INTEGER NOT NULL AS (json_extract(doc, '$.created_at')) STORED,
    PRIMARY KEY (kind, uuid),
    UNIQUE (kind, name),
    UNIQUE (kind, "key")
) STRICT;

CREATE INDEX resource_order ON resource (kind, created_at, uuid);
CREATE INDEX resource_node ON resource (node, kind, created_at, uuid);
