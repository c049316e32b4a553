CREATE TABLE public.audit (
    id bigint NOT NULL,
    at bigint NOT NULL,
    surface text NOT NULL,
    who text NOT NULL,
    owner text NOT NULL,
    agent text NOT NULL,
    op text NOT NULL,
    input text NOT NULL,
    result text NOT NULL,
    digest text NOT NULL,
    job text DEFAULT ''::text NOT NULL,
    script text DEFAULT ''::text NOT NULL,
    agreed text DEFAULT ''::text NOT NULL,
    form bigint DEFAULT 1 NOT NULL
);
CREATE SEQUENCE public.audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.audit_id_seq OWNED BY public.audit.id;
CREATE TABLE public.feedback (
    id bigint NOT NULL,
    at bigint NOT NULL,
    surface text NOT NULL,
    who text NOT NULL,
    verdict text NOT NULL,
    question text NOT NULL,
    answer text DEFAULT ''::text NOT NULL
);
CREATE SEQUENCE public.feedback_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.feedback_id_seq OWNED BY public.feedback.id;
CREATE TABLE public.leases (
    name text NOT NULL,
    holder text NOT NULL,
    until bigint NOT NULL
);
CREATE TABLE public.schema_version (
    version bigint NOT NULL
);
CREATE TABLE public.slack_docs (
    kind text NOT NULL,
    key text NOT NULL,
    value text NOT NULL,
    expires bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.slack_inbox (
    key text NOT NULL,
    body text NOT NULL,
    at bigint NOT NULL,
    done bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.slack_outbox (
    id bigint NOT NULL,
    key text NOT NULL,
    lane text NOT NULL,
    collapse text NOT NULL,
    body text NOT NULL,
    not_before bigint NOT NULL,
    attempts bigint DEFAULT 0 NOT NULL,
    tried bigint DEFAULT 0 NOT NULL,
    error text DEFAULT ''::text NOT NULL,
    queued bigint NOT NULL,
    state text DEFAULT 'due'::text NOT NULL
);
CREATE SEQUENCE public.slack_outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.slack_outbox_id_seq OWNED BY public.slack_outbox.id;
CREATE TABLE public.slack_refs (
    key text NOT NULL,
    channel text NOT NULL,
    ts text NOT NULL
);
CREATE TABLE public.submissions (
    key text NOT NULL,
    token text NOT NULL,
    cluster text NOT NULL,
    owner text NOT NULL,
    asked_by text NOT NULL,
    name text NOT NULL,
    spec text NOT NULL,
    spec_hash text NOT NULL,
    script text NOT NULL,
    dir text NOT NULL,
    state text NOT NULL,
    job_id text DEFAULT ''::text NOT NULL,
    message text DEFAULT ''::text NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    place text DEFAULT ''::text NOT NULL,
    attempted_at bigint DEFAULT 0 NOT NULL
);
ALTER TABLE ONLY public.audit ALTER COLUMN id SET DEFAULT nextval('public.audit_id_seq'::regclass);
ALTER TABLE ONLY public.feedback ALTER COLUMN id SET DEFAULT nextval('public.feedback_id_seq'::regclass);
ALTER TABLE ONLY public.slack_outbox ALTER COLUMN id SET DEFAULT nextval('public.slack_outbox_id_seq'::regclass);
INSERT INTO public.audit VALUES (1, 1795176000000, 'slack', 'U1', 'ada', '', 'submit', '{"name":"gpt"}', '4711', '0f82dd7b52edc8ec5b56ee72267b9948f63d7f02d1927ea4bf0defb0b0e1a28b', '4711', '', 'self', 2);
INSERT INTO public.audit VALUES (2, 1795176000000, 'shell', 'ada', 'ada', '', 'cancel', '{"job":"4711"}', 'ok', 'd27edddcc3511673cd98b6e05337f33fe0708a63741542c9c10470f14b1f0ed5', '4711', '', 'self', 2);
INSERT INTO public.feedback VALUES (1, 1795176000000, 'slack', 'U1', 'good', 'what is TP?', 'tensor parallel');
INSERT INTO public.leases VALUES ('leader', 'old:1:x', 1795288221703);
INSERT INTO public.schema_version VALUES (1);
INSERT INTO public.schema_version VALUES (2);
INSERT INTO public.schema_version VALUES (3);
INSERT INTO public.schema_version VALUES (4);
INSERT INTO public.schema_version VALUES (5);
INSERT INTO public.schema_version VALUES (6);
INSERT INTO public.slack_docs VALUES ('followed', 'dev/4711', '{"job_id":"4711","state":"RUNNING"}', 0);
INSERT INTO public.slack_docs VALUES ('notify', 'team/dev/4711/end/0', '{"target":"team"}', 0);
INSERT INTO public.slack_inbox VALUES ('T1/1', 'status 4711', 1795176000000, 0);
INSERT INTO public.slack_outbox VALUES (2, 'end/dev/4711', 'C1', '', 'the end', 0, 0, 0, '', 1795176000000, 'due');
INSERT INTO public.slack_outbox VALUES (1, 'card/dev/4711', 'C1', '', '', 0, 0, 0, '', 1795176000000, 'sent');
INSERT INTO public.slack_refs VALUES ('card/dev/4711', 'C1', '1.2');
INSERT INTO public.submissions VALUES ('ada/dev/a', 'a', 'dev', 'ada', 'slack:U1', 'gpt', '{"name":"gpt","nodes":2}', 'h', '#!/bin/bash
#SBATCH --nodes=2
', '/home/ada/gpt', 'submitted', '4711', '', 1795176000000, 1795176000000, 'login1:/run/locks', 1795176000000);
INSERT INTO public.submissions VALUES ('ada/dev/b', 'b', 'dev', 'ada', 'slack:U1', 'gpt', '{"name":"gpt","nodes":2}', 'h', '#!/bin/bash
#SBATCH --nodes=2
', '/home/ada/gpt', 'submitting', '', '', 1795176001000, 1795176001000, 'login1:/run/locks', 1795176001000);
SELECT pg_catalog.setval('public.audit_id_seq', 2, true);
SELECT pg_catalog.setval('public.feedback_id_seq', 1, true);
SELECT pg_catalog.setval('public.slack_outbox_id_seq', 2, true);
ALTER TABLE ONLY public.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.feedback
    ADD CONSTRAINT feedback_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.slack_docs
    ADD CONSTRAINT slack_docs_pkey PRIMARY KEY (kind, key);
ALTER TABLE ONLY public.slack_inbox
    ADD CONSTRAINT slack_inbox_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.slack_outbox
    ADD CONSTRAINT slack_outbox_key_key UNIQUE (key);
ALTER TABLE ONLY public.slack_outbox
    ADD CONSTRAINT slack_outbox_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.slack_refs
    ADD CONSTRAINT slack_refs_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.submissions
    ADD CONSTRAINT submissions_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.submissions
    ADD CONSTRAINT submissions_token_key UNIQUE (token);
CREATE INDEX feedback_verdict ON public.feedback USING btree (verdict, at);
CREATE INDEX slack_inbox_open ON public.slack_inbox USING btree (done, at);
CREATE INDEX slack_outbox_due ON public.slack_outbox USING btree (state, lane, id);
CREATE INDEX slack_refs_at ON public.slack_refs USING btree (channel, ts);
CREATE INDEX submissions_job ON public.submissions USING btree (cluster, job_id);
CREATE INDEX submissions_state ON public.submissions USING btree (state);
