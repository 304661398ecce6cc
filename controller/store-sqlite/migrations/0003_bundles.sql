-- Bundles of external hardware managers: a new table only, so that nothing that is there has to be rewritten.

CREATE TABLE bundle (
    name   TEXT NOT NULL CHECK (name = json_extract(doc, '$.name')),
    -- As the scope is written for people: 'all', 'driver:…', 'resource_class:…', 'node:…'.
    scope  TEXT NOT NULL,
    doc    TEXT NOT NULL,
    digest TEXT NOT NULL AS (json_extract(doc, '$.digest')) STORED,
    -- The one node that it is meant for; a bundle goes with its node.
    node   TEXT REFERENCES node (uuid) ON DELETE CASCADE AS (json_extract(doc, '$.scope.node')) STORED,
    PRIMARY KEY (name, scope)
) STRICT;

CREATE INDEX bundle_node ON bundle (node);
