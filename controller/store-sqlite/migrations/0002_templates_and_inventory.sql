-- Deploy templates and inventories: new tables only, so that nothing that is there has to be rewritten.

CREATE TABLE deploy_template (
    uuid       TEXT PRIMARY KEY NOT NULL CHECK (uuid = json_extract(doc, '$.uuid')),
    doc        TEXT NOT NULL,
    version    INTEGER NOT NULL AS (json_extract(doc, '$.version')) STORED,
    name       TEXT NOT NULL UNIQUE AS (json_extract(doc, '$.name')) STORED,
    created_at INTEGER NOT NULL AS (json_extract(doc, '$.created_at')) STORED
) STRICT;

-- Apart from the node's row, which is read and written with every step.
CREATE TABLE inventory (
    node TEXT PRIMARY KEY NOT NULL REFERENCES node (uuid) ON DELETE CASCADE,
    doc  TEXT NOT NULL CHECK (json_valid(doc))
) STRICT;
