-- Everything the controller stores. Each row holds its noun whole, as the JSON document that `model` defines;
-- the columns it is looked up by are computed from that document by SQLite itself, so they cannot disagree.
-- Instants are microseconds since 1970-01-01T00:00:00Z, UUIDs lower case with hyphens.

PRAGMA application_id = 0x416E6E6C; -- "Annl"

CREATE TABLE node (
    uuid          TEXT PRIMARY KEY NOT NULL CHECK (uuid = json_extract(doc, '$.uuid')),
    doc           TEXT NOT NULL,
    version       INTEGER NOT NULL AS (json_extract(doc, '$.version')) STORED,
    name          TEXT UNIQUE      AS (json_extract(doc, '$.name')) STORED,
    instance_uuid TEXT UNIQUE      AS (json_extract(doc, '$.instance_uuid')) STORED,
    next_wake_at  INTEGER          AS (json_extract(doc, '$.next_wake_at')) STORED,
    created_at    INTEGER NOT NULL AS (json_extract(doc, '$.created_at')) STORED
) STRICT;
CREATE INDEX node_order ON node (created_at, uuid);
CREATE INDEX node_due ON node (next_wake_at, uuid) WHERE next_wake_at IS NOT NULL;

-- History; `seq` is the order in which the events were stored.
CREATE TABLE event (
    seq  INTEGER PRIMARY KEY AUTOINCREMENT,
    node TEXT NOT NULL REFERENCES node (uuid) ON DELETE CASCADE,
    doc  TEXT NOT NULL CHECK (json_valid(doc))
) STRICT;
CREATE INDEX event_node ON event (node, seq);

-- Contact with the agent: apart from the node's row, so that a heartbeat never makes a write of it stale.
CREATE TABLE contact (
    node TEXT PRIMARY KEY NOT NULL REFERENCES node (uuid) ON DELETE CASCADE,
    doc  TEXT NOT NULL CHECK (json_valid(doc))
) STRICT;

CREATE TABLE catalogue (
    node TEXT NOT NULL REFERENCES node (uuid) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('clean', 'deploy', 'service')),
    doc  TEXT NOT NULL CHECK (json_valid(doc)),
    PRIMARY KEY (node, kind)
) STRICT;

-- AUTOINCREMENT: an epoch is never given twice, not even after its node was deleted and enrolled again.
CREATE TABLE lease (
    epoch  INTEGER PRIMARY KEY AUTOINCREMENT,
    node   TEXT NOT NULL UNIQUE REFERENCES node (uuid) ON DELETE CASCADE,
    holder TEXT NOT NULL,
    until  INTEGER NOT NULL
) STRICT;

-- What the last inspection found: apart from the node's row, which is read and written with every step.
CREATE TABLE inventory (
    node TEXT PRIMARY KEY NOT NULL REFERENCES node (uuid) ON DELETE CASCADE,
    doc  TEXT NOT NULL CHECK (json_valid(doc))
) STRICT;

-- Bundles of external hardware managers.
CREATE TABLE bundle (
    name   TEXT NOT NULL CHECK (name = json_extract(doc, '$.name')),
    -- The scope as users write it: 'all', 'driver:…', 'resource_class:…', 'node:…'.
    scope  TEXT NOT NULL,
    doc    TEXT NOT NULL,
    digest TEXT NOT NULL AS (json_extract(doc, '$.digest')) STORED,
    -- The node of a bundle for one node; the bundle is deleted with it.
    node   TEXT REFERENCES node (uuid) ON DELETE CASCADE AS (json_extract(doc, '$.scope.node')) STORED,
    PRIMARY KEY (name, scope)
) STRICT;

CREATE INDEX bundle_node ON bundle (node);

-- Erasure certificates. No REFERENCES: they outlive their node.
CREATE TABLE certificate (
    id     TEXT PRIMARY KEY NOT NULL CHECK (id = json_extract(doc, '$.id')),
    doc    TEXT NOT NULL,
    node   TEXT NOT NULL AS (json_extract(doc, '$.node')) STORED,
    number INTEGER NOT NULL AS (json_extract(doc, '$.number')) STORED,
    UNIQUE (node, number)
) STRICT;

-- Chassis, ports, port groups, volumes, allocations, runbooks, deploy templates and inspection rules.
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
