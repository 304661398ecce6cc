-- Lists of nodes. `node_list` has a small row for each node, with what lists are filtered and sorted by, and an index for
-- each of its columns that ends with the order of lists (created_at, uuid). Triggers keep it: they write, and touch the index
-- of, only the column that a write of the node changed.

ALTER TABLE node ADD COLUMN instance_name TEXT
    AS (CASE json_type(doc, '$.other.instance_name') WHEN 'text' THEN json_extract(doc, '$.other.instance_name') END) VIRTUAL;
ALTER TABLE node ADD COLUMN owner TEXT
    AS (CASE json_type(doc, '$.other.owner') WHEN 'text' THEN json_extract(doc, '$.other.owner') END) VIRTUAL;
ALTER TABLE node ADD COLUMN lessee TEXT
    AS (CASE json_type(doc, '$.other.lessee') WHEN 'text' THEN json_extract(doc, '$.other.lessee') END) VIRTUAL;
ALTER TABLE node ADD COLUMN chassis_uuid TEXT
    AS (CASE json_type(doc, '$.other.chassis_uuid') WHEN 'text' THEN json_extract(doc, '$.other.chassis_uuid') END) VIRTUAL;
ALTER TABLE node ADD COLUMN shard TEXT
    AS (CASE json_type(doc, '$.other.shard') WHEN 'text' THEN json_extract(doc, '$.other.shard') END) VIRTUAL;
ALTER TABLE node ADD COLUMN parent_node TEXT
    AS (CASE json_type(doc, '$.other.parent_node') WHEN 'text' THEN json_extract(doc, '$.other.parent_node') END) VIRTUAL;
ALTER TABLE node ADD COLUMN description TEXT
    AS (CASE json_type(doc, '$.other.description') WHEN 'text' THEN json_extract(doc, '$.other.description') END) VIRTUAL;
-- No group is the group without a name.
ALTER TABLE node ADD COLUMN conductor_group TEXT
    AS (CASE coalesce(json_type(doc, '$.other.conductor_group'), 'null')
        WHEN 'text' THEN json_extract(doc, '$.other.conductor_group') WHEN 'null' THEN '' END) VIRTUAL;
ALTER TABLE node ADD COLUMN driver TEXT AS (json_extract(doc, '$.driver')) VIRTUAL;
ALTER TABLE node ADD COLUMN resource_class TEXT AS (json_extract(doc, '$.resource_class')) VIRTUAL;
ALTER TABLE node ADD COLUMN provision_state TEXT AS (json_extract(doc, '$.provision_state')) VIRTUAL;
ALTER TABLE node ADD COLUMN power_state TEXT AS (json_extract(doc, '$.power_state')) VIRTUAL;
ALTER TABLE node ADD COLUMN fault TEXT AS (json_extract(doc, '$.fault')) VIRTUAL;
ALTER TABLE node ADD COLUMN maintenance INTEGER AS (json_extract(doc, '$.maintenance') IS 1) VIRTUAL;
ALTER TABLE node ADD COLUMN retired INTEGER AS (json_extract(doc, '$.retired') IS 1) VIRTUAL;

CREATE TABLE node_list (
    created_at      INTEGER NOT NULL,
    uuid            TEXT NOT NULL,
    name            TEXT,
    instance_uuid   TEXT,
    instance_name   TEXT,
    driver          TEXT,
    resource_class  TEXT,
    owner           TEXT,
    lessee          TEXT,
    conductor_group TEXT,
    chassis_uuid    TEXT,
    shard           TEXT,
    parent_node     TEXT,
    provision_state TEXT,
    power_state     TEXT,
    fault           TEXT,
    maintenance     INTEGER NOT NULL,
    retired         INTEGER NOT NULL,
    associated      INTEGER NOT NULL AS (instance_uuid IS NOT NULL) VIRTUAL,
    sharded         INTEGER NOT NULL AS (shard IS NOT NULL) VIRTUAL,
    PRIMARY KEY (created_at, uuid)
) STRICT, WITHOUT ROWID;

-- Which projects a node belongs to: those that own or lease it.
CREATE TABLE node_project (
    project    TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    uuid       TEXT NOT NULL,
    PRIMARY KEY (project, created_at, uuid)
) STRICT, WITHOUT ROWID;

INSERT INTO node_list (
        created_at, uuid, name, instance_uuid, instance_name, driver, resource_class, owner, lessee,
        conductor_group, chassis_uuid, shard, parent_node, provision_state, power_state, fault, maintenance,
        retired)
    SELECT created_at, uuid, name, instance_uuid, instance_name, driver, resource_class, owner, lessee,
        conductor_group, chassis_uuid, shard, parent_node, provision_state, power_state, fault, maintenance,
        retired FROM node;
INSERT INTO node_project SELECT owner, created_at, uuid FROM node WHERE owner IS NOT NULL
    UNION SELECT lessee, created_at, uuid FROM node WHERE lessee IS NOT NULL;

CREATE INDEX node_list_uuid ON node_list (uuid, created_at);
CREATE INDEX node_list_name ON node_list (name, created_at, uuid);
CREATE INDEX node_list_instance_uuid ON node_list (instance_uuid, created_at, uuid);
CREATE INDEX node_list_instance_name ON node_list (instance_name, created_at, uuid);
CREATE INDEX node_list_driver ON node_list (driver, created_at, uuid);
CREATE INDEX node_list_resource_class ON node_list (resource_class, created_at, uuid);
CREATE INDEX node_list_owner ON node_list (owner, created_at, uuid);
CREATE INDEX node_list_lessee ON node_list (lessee, created_at, uuid);
CREATE INDEX node_list_conductor_group ON node_list (conductor_group, created_at, uuid);
CREATE INDEX node_list_chassis_uuid ON node_list (chassis_uuid, created_at, uuid);
CREATE INDEX node_list_shard ON node_list (shard, created_at, uuid);
CREATE INDEX node_list_parent_node ON node_list (parent_node, created_at, uuid);
CREATE INDEX node_list_provision_state ON node_list (provision_state, created_at, uuid);
CREATE INDEX node_list_power_state ON node_list (power_state, created_at, uuid);
CREATE INDEX node_list_fault ON node_list (fault, created_at, uuid);
CREATE INDEX node_list_maintenance ON node_list (maintenance, created_at, uuid);
CREATE INDEX node_list_retired ON node_list (retired, created_at, uuid);
CREATE INDEX node_list_associated ON node_list (associated, created_at, uuid);
CREATE INDEX node_list_sharded ON node_list (sharded, created_at, uuid);

CREATE TRIGGER node_list_insert AFTER INSERT ON node BEGIN
    INSERT INTO node_list (
        created_at, uuid, name, instance_uuid, instance_name, driver, resource_class, owner, lessee,
        conductor_group, chassis_uuid, shard, parent_node, provision_state, power_state, fault, maintenance,
        retired)
        VALUES (new.created_at, new.uuid, new.name, new.instance_uuid, new.instance_name, new.driver,
        new.resource_class, new.owner, new.lessee, new.conductor_group, new.chassis_uuid, new.shard,
        new.parent_node, new.provision_state, new.power_state, new.fault, new.maintenance, new.retired);
    INSERT OR IGNORE INTO node_project SELECT new.owner, new.created_at, new.uuid WHERE new.owner IS NOT NULL;
    INSERT OR IGNORE INTO node_project SELECT new.lessee, new.created_at, new.uuid WHERE new.lessee IS NOT NULL;
END;

CREATE TRIGGER node_list_delete AFTER DELETE ON node BEGIN
    DELETE FROM node_list WHERE created_at = old.created_at AND uuid = old.uuid;
    DELETE FROM node_project
        WHERE project IN (old.owner, old.lessee) AND created_at = old.created_at AND uuid = old.uuid;
END;

CREATE TRIGGER node_list_moved AFTER UPDATE ON node
WHEN old.created_at IS NOT new.created_at OR old.uuid IS NOT new.uuid BEGIN
    DELETE FROM node_list WHERE created_at = old.created_at AND uuid = old.uuid;
    INSERT INTO node_list (
        created_at, uuid, name, instance_uuid, instance_name, driver, resource_class, owner, lessee,
        conductor_group, chassis_uuid, shard, parent_node, provision_state, power_state, fault, maintenance,
        retired)
        VALUES (new.created_at, new.uuid, new.name, new.instance_uuid, new.instance_name, new.driver,
        new.resource_class, new.owner, new.lessee, new.conductor_group, new.chassis_uuid, new.shard,
        new.parent_node, new.provision_state, new.power_state, new.fault, new.maintenance, new.retired);
END;

CREATE TRIGGER node_project_changed AFTER UPDATE ON node
WHEN old.owner IS NOT new.owner OR old.lessee IS NOT new.lessee OR old.created_at IS NOT new.created_at
    OR old.uuid IS NOT new.uuid BEGIN
    DELETE FROM node_project
        WHERE project IN (old.owner, old.lessee) AND created_at = old.created_at AND uuid = old.uuid;
    INSERT OR IGNORE INTO node_project SELECT new.owner, new.created_at, new.uuid WHERE new.owner IS NOT NULL;
    INSERT OR IGNORE INTO node_project SELECT new.lessee, new.created_at, new.uuid WHERE new.lessee IS NOT NULL;
END;

CREATE TRIGGER node_list_name AFTER UPDATE ON node WHEN old.name IS NOT new.name BEGIN
    UPDATE node_list SET name = new.name WHERE created_at = new.created_at AND uuid = new.uuid;
END;
CREATE TRIGGER node_list_instance_uuid AFTER UPDATE ON node WHEN old.instance_uuid IS NOT new.instance_uuid BEGIN
    UPDATE node_list SET instance_uuid = new.instance_uuid WHERE created_at = new.created_at AND uuid = new.uuid;
END;
CREATE TRIGGER node_list_instance_name AFTER UPDATE ON node WHEN old.instance_name IS NOT new.instance_name BEGIN
    UPDATE node_list SET instance_name = new.instance_name WHERE created_at = new.created_at AND uuid = new.uuid;
END;
CREATE TRIGGER node_list_driver AFTER UPDATE ON node WHEN old.driver IS NOT new.driver BEGIN
    UPDATE node_list SET driver = new.driver WHERE created_at = new.created_at AND uuid = new.uuid;
END;
CREATE TRIGGER node_list_resource_class AFTER UPDATE ON node WHEN old.resource_class IS NOT new.resource_class BEGIN
    UPDATE node_list SET resource_class = new.resource_class WHERE created_at = new.created_at AND uuid = new.uuid;
END;
CREATE TRIGGER node_list_owner AFTER UPDATE ON node WHEN old.owner IS NOT new.owner BEGIN
    UPDATE node_list SET owner = new.owner WHERE created_at = new.created_at AND uuid = new.uuid;
END;
CREATE TRIGGER node_list_lessee AFTER UPDATE ON node WHEN old.lessee IS NOT new.lessee BEGIN
    UPDATE node_list SET lessee = new.lessee WHERE created_at = new.created_at AND uuid = new.uuid;
END;
CREATE TRIGGER node_list_conductor_group AFTER UPDATE ON node WHEN old.conductor_group IS NOT new.conductor_group BEGIN
    UPDATE node_list SET conductor_group = new.conductor_group WHERE created_at = new.created_at AND uuid = new.uuid;
END;
CREATE TRIGGER node_list_chassis_uuid AFTER UPDATE ON node WHEN old.chassis_uuid IS NOT new.chassis_uuid BEGIN
    UPDATE node_list SET chassis_uuid = new.chassis_uuid WHERE created_at = new.created_at AND uuid = new.uuid;
END;
CREATE TRIGGER node_list_shard AFTER UPDATE ON node WHEN old.shard IS NOT new.shard BEGIN
    UPDATE node_list SET shard = new.shard WHERE created_at = new.created_at AND uuid = new.uuid;
END;
CREATE TRIGGER node_list_parent_node AFTER UPDATE ON node WHEN old.parent_node IS NOT new.parent_node BEGIN
    UPDATE node_list SET parent_node = new.parent_node WHERE created_at = new.created_at AND uuid = new.uuid;
END;
CREATE TRIGGER node_list_provision_state AFTER UPDATE ON node WHEN old.provision_state IS NOT new.provision_state BEGIN
    UPDATE node_list SET provision_state = new.provision_state WHERE created_at = new.created_at AND uuid = new.uuid;
END;
CREATE TRIGGER node_list_power_state AFTER UPDATE ON node WHEN old.power_state IS NOT new.power_state BEGIN
    UPDATE node_list SET power_state = new.power_state WHERE created_at = new.created_at AND uuid = new.uuid;
END;
CREATE TRIGGER node_list_fault AFTER UPDATE ON node WHEN old.fault IS NOT new.fault BEGIN
    UPDATE node_list SET fault = new.fault WHERE created_at = new.created_at AND uuid = new.uuid;
END;
CREATE TRIGGER node_list_maintenance AFTER UPDATE ON node WHEN old.maintenance IS NOT new.maintenance BEGIN
    UPDATE node_list SET maintenance = new.maintenance WHERE created_at = new.created_at AND uuid = new.uuid;
END;
CREATE TRIGGER node_list_retired AFTER UPDATE ON node WHEN old.retired IS NOT new.retired BEGIN
    UPDATE node_list SET retired = new.retired WHERE created_at = new.created_at AND uuid = new.uuid;
END;

-- Lists of resources.
ALTER TABLE resource ADD COLUMN address TEXT
    AS (CASE json_type(doc, '$.fields.address') WHEN 'text' THEN json_extract(doc, '$.fields.address') END) VIRTUAL;
ALTER TABLE resource ADD COLUMN portgroup_uuid TEXT
    AS (CASE json_type(doc, '$.fields.portgroup_uuid') WHEN 'text' THEN json_extract(doc, '$.fields.portgroup_uuid') END) VIRTUAL;
ALTER TABLE resource ADD COLUMN owner TEXT
    AS (CASE json_type(doc, '$.fields.owner') WHEN 'text' THEN json_extract(doc, '$.fields.owner') END) VIRTUAL;
ALTER TABLE resource ADD COLUMN resource_class TEXT
    AS (CASE json_type(doc, '$.fields.resource_class') WHEN 'text' THEN json_extract(doc, '$.fields.resource_class') END) VIRTUAL;
ALTER TABLE resource ADD COLUMN state TEXT
    AS (CASE json_type(doc, '$.fields.state') WHEN 'text' THEN json_extract(doc, '$.fields.state') END) VIRTUAL;
ALTER TABLE resource ADD COLUMN description TEXT
    AS (CASE json_type(doc, '$.fields.description') WHEN 'text' THEN json_extract(doc, '$.fields.description') END) VIRTUAL;

CREATE INDEX resource_name ON resource (kind, name, created_at, uuid);
CREATE INDEX resource_kind_node ON resource (kind, node, created_at, uuid);
CREATE INDEX resource_address ON resource (kind, address, created_at, uuid);
CREATE INDEX resource_portgroup ON resource (kind, portgroup_uuid, created_at, uuid);
CREATE INDEX resource_owner ON resource (kind, owner, created_at, uuid);
CREATE INDEX resource_class ON resource (kind, resource_class, created_at, uuid);
CREATE INDEX resource_state ON resource (kind, state, created_at, uuid);
CREATE INDEX resource_uuid ON resource (kind, uuid, created_at);
