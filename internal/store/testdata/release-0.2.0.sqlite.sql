BEGIN TRANSACTION;
CREATE TABLE audit (
		id      INTEGER PRIMARY KEY AUTOINCREMENT,
		at      BIGINT NOT NULL,
		surface TEXT NOT NULL,
		who     TEXT NOT NULL,
		owner   TEXT NOT NULL,
		agent   TEXT NOT NULL,
		op      TEXT NOT NULL,
		input   TEXT NOT NULL,
		result  TEXT NOT NULL,
		digest  TEXT NOT NULL
	, job TEXT NOT NULL DEFAULT '', script TEXT NOT NULL DEFAULT '', agreed TEXT NOT NULL DEFAULT '', form BIGINT NOT NULL DEFAULT 1);
INSERT INTO "audit" VALUES(1,1795176000000,'slack','U1','ada','','submit','{"name":"gpt"}','4711','0f82dd7b52edc8ec5b56ee72267b9948f63d7f02d1927ea4bf0defb0b0e1a28b','4711','','self',2);
INSERT INTO "audit" VALUES(2,1795176000000,'shell','ada','ada','','cancel','{"job":"4711"}','ok','d27edddcc3511673cd98b6e05337f33fe0708a63741542c9c10470f14b1f0ed5','4711','','self',2);
CREATE TABLE feedback (
		id       INTEGER PRIMARY KEY AUTOINCREMENT,
		at       BIGINT NOT NULL,
		surface  TEXT NOT NULL,
		who      TEXT NOT NULL,
		verdict  TEXT NOT NULL,
		question TEXT NOT NULL,
		answer   TEXT NOT NULL DEFAULT ''
	);
INSERT INTO "feedback" VALUES(1,1795176000000,'slack','U1','good','what is TP?','tensor parallel');
CREATE TABLE leases (
		name   TEXT PRIMARY KEY,
		holder TEXT NOT NULL,
		until  BIGINT NOT NULL
	);
CREATE TABLE schema_version (version BIGINT NOT NULL);
INSERT INTO "schema_version" VALUES(1);
INSERT INTO "schema_version" VALUES(2);
INSERT INTO "schema_version" VALUES(3);
INSERT INTO "schema_version" VALUES(4);
INSERT INTO "schema_version" VALUES(5);
INSERT INTO "schema_version" VALUES(6);
CREATE TABLE slack_docs (
		kind    TEXT NOT NULL,
		key     TEXT NOT NULL,
		value   TEXT NOT NULL,
		expires BIGINT NOT NULL DEFAULT 0,
		PRIMARY KEY (kind, key)
	);
INSERT INTO "slack_docs" VALUES('followed','dev/4711','{"job_id":"4711","state":"RUNNING"}',0);
INSERT INTO "slack_docs" VALUES('notify','team/dev/4711/end/0','{"target":"team"}',0);
CREATE TABLE slack_inbox (
		key  TEXT PRIMARY KEY,
		body TEXT NOT NULL,
		at   BIGINT NOT NULL,
		done BIGINT NOT NULL DEFAULT 0
	);
INSERT INTO "slack_inbox" VALUES('T1/1','status 4711',1795176000000,0);
CREATE TABLE slack_outbox (
		id         INTEGER PRIMARY KEY AUTOINCREMENT,
		key        TEXT NOT NULL UNIQUE,
		lane       TEXT NOT NULL,
		collapse   TEXT NOT NULL,
		body       TEXT NOT NULL,
		not_before BIGINT NOT NULL,
		attempts   BIGINT NOT NULL DEFAULT 0,
		tried      BIGINT NOT NULL DEFAULT 0,
		error      TEXT NOT NULL DEFAULT '',
		queued     BIGINT NOT NULL,
		state      TEXT NOT NULL DEFAULT 'due'
	);
INSERT INTO "slack_outbox" VALUES(1,'card/dev/4711','C1','','',0,0,0,'',1795176000000,'sent');
INSERT INTO "slack_outbox" VALUES(2,'end/dev/4711','C1','','the end',0,0,0,'',1795176000000,'due');
CREATE TABLE slack_refs (
		key     TEXT PRIMARY KEY,
		channel TEXT NOT NULL,
		ts      TEXT NOT NULL
	);
INSERT INTO "slack_refs" VALUES('card/dev/4711','C1','1.2');
CREATE TABLE submissions (
		key        TEXT PRIMARY KEY,
		token      TEXT NOT NULL UNIQUE,
		cluster    TEXT NOT NULL,
		owner      TEXT NOT NULL,
		asked_by   TEXT NOT NULL,
		name       TEXT NOT NULL,
		spec       TEXT NOT NULL,
		spec_hash  TEXT NOT NULL,
		script     TEXT NOT NULL,
		dir        TEXT NOT NULL,
		state      TEXT NOT NULL,
		job_id     TEXT NOT NULL DEFAULT '',
		message    TEXT NOT NULL DEFAULT '',
		created_at BIGINT NOT NULL,
		updated_at BIGINT NOT NULL
	, place TEXT NOT NULL DEFAULT '', attempted_at BIGINT NOT NULL DEFAULT 0);
INSERT INTO "submissions" VALUES('ada/dev/a','a','dev','ada','slack:U1','gpt','{"name":"gpt","nodes":2}','h','#!/bin/bash
#SBATCH --nodes=2
','/home/ada/gpt','submitted','4711','',1795176000000,1795176000000,'login1:/run/locks',1795176000000);
INSERT INTO "submissions" VALUES('ada/dev/b','b','dev','ada','slack:U1','gpt','{"name":"gpt","nodes":2}','h','#!/bin/bash
#SBATCH --nodes=2
','/home/ada/gpt','submitting','','',1795176001000,1795176001000,'login1:/run/locks',1795176001000);
CREATE INDEX submissions_job ON submissions (cluster, job_id);
CREATE INDEX submissions_state ON submissions (state);
CREATE INDEX slack_inbox_open ON slack_inbox (done, at);
CREATE INDEX slack_outbox_due ON slack_outbox (state, lane, id);
CREATE INDEX slack_refs_at ON slack_refs (channel, ts);
CREATE INDEX feedback_verdict ON feedback (verdict, at);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('audit',2);
INSERT INTO "sqlite_sequence" VALUES('feedback',1);
INSERT INTO "sqlite_sequence" VALUES('slack_outbox',2);
COMMIT;
