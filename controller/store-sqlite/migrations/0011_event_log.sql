-- The events of all nodes, in the order of their commits: one connection writes. They outlive their node.
-- AUTOINCREMENT: a number is never given twice, since clients keep it.
CREATE TABLE event_log (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    at    INTEGER NOT NULL,
    doc   TEXT NOT NULL CHECK (json_valid(doc))
) STRICT;

-- How far each webhook got the events, and which controller delivers them.
CREATE TABLE webhook (
    name TEXT PRIMARY KEY NOT NULL CHECK (name = json_extract(doc, '$.webhook')),
    doc  TEXT NOT NULL
) STRICT;

-- Events that a webhook was not given, by the number of the event. `retry`: a user asked for another try.
CREATE TABLE dead_letter (
    webhook TEXT NOT NULL,
    place   INTEGER NOT NULL,
    doc     TEXT NOT NULL,
    retry   INTEGER NOT NULL AS (json_extract(doc, '$.retry')) STORED,
    PRIMARY KEY (webhook, place)
) STRICT;
