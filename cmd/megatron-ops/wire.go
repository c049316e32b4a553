package main

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of a store on PostgreSQL

	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/consent"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/answers"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/knowledge"
	"github.com/megatron-ops/megatron-ops/knowledge/cards"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/cluster/local"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// The built-in clusters.
const (
	localCluster = "local"
	slurmCluster = "slurm"
)

// service wires the operations to what the configuration names. It opens and queries
// nothing yet.
func (sh *shell) service() (*ops.Service, error) {
	cfg, err := loadConfig()
	if err != nil {
		return nil, err
	}
	return sh.serviceOf(cfg)
}

// serviceOf wires the operations to what cfg names.
func (sh *shell) serviceOf(cfg config.Config) (*ops.Service, error) {
	if l, ok := lang.Parse(cfg.Lang); ok && os.Getenv("MEGATRON_OPS_LANG") == "" && !sh.langGiven {
		sh.lang = l
	}
	state, stateless := config.StateDir(os.Getenv) // most commands need no state; the others report the error
	clusters, err := clusters(cfg, state)
	if err != nil {
		return nil, err
	}
	named, chosen := defaultCluster(cfg, sh.cluster)
	approvalLife, _ := cfg.Slack.Approval.Life() // which was checked when cfg was read
	if stateless != nil {
		refuseJobs(clusters, stateless)
	}
	database := cmp.Or(cfg.Store, filepath.Join(state, "state.db"))
	var svc *ops.Service
	svc = &ops.Service{
		ApprovalLife: approvalLife,
		Clusters:     clusters,
		Default:      named,
		Unchosen:     !chosen,
		Now:          time.Now,
		Version:      version(),
		PageURL:      cfg.Web.URL,
		Self:         osUser(ops.Shell).User,
		As:           actAs(cfg),
		Locks:        filepath.Join(state, "submitting"),
		Sites:        sites(cfg),
		Failures:     &ops.FailureReports{},
		Answerer: sync.OnceValue(func() *knowledge.Answerer {
			return knowledge.New(knowledge.Options{
				Site: cfg.Knowledge.Folders, Own: answers.About(operations.All), Added: siteCards(svc, database),
				Model: model(cfg.Knowledge), Embedder: embedder(svc),
			})
		}),
		Store: sync.OnceValues(func() (*store.Store, error) {
			if stateless != nil { // a submission needs its locks, wherever the store is
				return nil, stateless
			}
			st, err := store.Open(context.Background(), database)
			if err == nil {
				st.KeepHead(state)
			}
			return st, err
		}),
	}
	if _, ok := clusters[svc.Default]; !ok {
		return nil, cfg.NoCluster(svc.Default, slices.Sorted(maps.Keys(clusters)))
	}
	svc.Audit = auditor(svc, sh.logger())
	return svc, nil
}

// defaultCluster returns the cluster that a command without --cluster means. If nothing
// is chosen, the embedded back end is only for reading: a job for the cluster must not
// be trained on the login node because Slurm's module is not loaded.
func defaultCluster(cfg config.Config, asked string) (name string, chosen bool) {
	if name := cmp.Or(asked, cfg.Cluster); name != "" {
		return name, true
	}
	if _, err := exec.LookPath("sbatch"); err == nil {
		return slurmCluster, true
	}
	return localCluster, false
}

func clusters(cfg config.Config, state string) (map[string]ops.Cluster, error) {
	all := map[string]ops.Cluster{localCluster: local.New(localCluster, filepath.Join(state, "local")), slurmCluster: cluster.NewCLI(slurmCluster)}
	for name, c := range cfg.Clusters {
		cl, err := newCluster(name, c, state)
		if err != nil {
			return nil, &ops.Error{Code: ops.BadInput, Field: "clusters." + name, Message: lang.Said(err), Fix: lang.Text{EN: "docs/configuration.md has an example of each kind", ZH: "docs/configuration.md 有每种集群的示例"}}
		}
		all[name] = cl
		if _, named := cfg.Clusters[slurmCluster]; !named && ownSlurm(c) {
			delete(all, slurmCluster)
		}
	}
	return all, nil
}

// ownSlurm reports whether a configured cluster is the Slurm that this machine's
// commands reach, under a name of the site's. As two clusters, its jobs would be
// reported twice.
func ownSlurm(c config.Cluster) bool {
	return c.Kind == "cli" && c.SlurmBin == "" && (c.SlurmConf == "" || c.SlurmConf == os.Getenv("SLURM_CONF"))
}

func newCluster(name string, c config.Cluster, state string) (ops.Cluster, error) {
	switch c.Kind {
	case "cli":
		cl := cluster.NewCLI(name)
		cl.Environ, cl.TokenInName, cl.Helper = environOf(c), c.TokenInName, helperOf(c)
		return cl, nil
	case "ssh":
		var env []string
		if c.SlurmConf != "" {
			env = []string{"SLURM_CONF=" + c.SlurmConf}
		}
		cl, err := cluster.NewSSH(name, cluster.SSHOptions{
			Host: c.Host, Config: c.SSHConfig, Env: env, Bin: c.SlurmBin, SyncTo: c.SyncTo, SyncExclude: c.SyncExclude,
		})
		if err == nil {
			cl.TokenInName = c.TokenInName
		}
		return cl, err
	case "rest":
		me := osUser(ops.Shell).User
		cl, err := cluster.NewREST(name, c.URL, me, tokenOf(c.TokenFile, me))
		if err == nil {
			cl.DefaultPartition, cl.Bin = c.DefaultPartition, commandsOf(c)
		}
		return cl, err
	}
	return local.New(name, filepath.Join(state, name)), nil
}

// environOf returns the environment of a cluster's commands on this machine.
func environOf(c config.Cluster) func() []string {
	return func() []string {
		env := cluster.WithFolder(os.Environ(), c.SlurmBin)
		if c.SlurmConf != "" {
			env = append(env, "SLURM_CONF="+c.SlurmConf)
		}
		return env
	}
}

// tokenOf returns a function that reads a user's JWT. %u in the file's name stands for
// the user, so that a helper that has the key can keep one file per user.
func tokenOf(file, user string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		b, err := os.ReadFile(strings.ReplaceAll(file, "%u", user))
		return strings.TrimSpace(string(b)), err
	}
}

// actAs returns a function that gives the back end for acting as another person, if the
// cluster's configuration allows it: by sudo here, by that person's own login over ssh,
// or by that person's own token.
func actAs(cfg config.Config) func(ops.Cluster, string) (ops.Cluster, error) {
	return func(cl ops.Cluster, user string) (ops.Cluster, error) {
		c, ok := cfg.Clusters[cl.Name()]
		if !ok || !c.ActAs {
			return nil, lang.Text{
				EN: "this server runs as %s on %s and may not act as %s: clusters.%s.act_as lets it",
				ZH: "本服务在 %[2]s 上以 %[1]s 的身份运行，不允许代表 %[3]s 操作：设置 clusters.%[4]s.act_as 后可以",
			}.Err(osUser(ops.Shell).User, cl.Name(), user, cl.Name())
		}
		switch cl := cl.(type) {
		case *cluster.CLI:
			return cl.As(user)
		case *cluster.REST:
			if strings.Contains(c.TokenFile, "%u") {
				return cl.As(user, tokenOf(c.TokenFile, user))
			}
			return nil, lang.Text{
				EN: "clusters.%s.token_file has no %%u for each person's own token",
				ZH: "clusters.%s.token_file 中没有代表各人令牌的 %%u",
			}.Err(cl.Name())
		}
		return nil, lang.Text{
			EN: "%s is this machine's embedded back end: only %s can act on it",
			ZH: "%s 是本机的内置后端：只有 %s 可以操作",
		}.Err(cl.Name(), osUser(ops.Shell).User)
	}
}

// helperOf is how the server runs Slurm's commands as another user. The sudo rule
// contains exactly these words.
func helperOf(c config.Cluster) cluster.Helper {
	h := cluster.Helper{SlurmConf: cmp.Or(c.SlurmConf, os.Getenv("SLURM_CONF"))}
	if program, err := os.Executable(); err == nil {
		h.Program, _ = filepath.EvalSymlinks(program)
	}
	h.SlurmBin = commandsOf(c)
	return h
}

// commandsOf is the folder of a cluster's Slurm commands: as configured, else as found
// on this machine.
func commandsOf(c config.Cluster) string {
	if c.SlurmBin != "" {
		return c.SlurmBin
	}
	folder, _ := cluster.FindCommands(os.Environ())
	return folder
}

func sites(cfg config.Config) func(string) job.Site {
	return func(name string) job.Site {
		if c, ok := cfg.Clusters[name]; ok {
			return c.Site
		}
		return cfg.Site
	}
}

// modelPerDay bounds how many answers per day the model words for one person.
const modelPerDay = 200

// model returns the language model that words answers, or nil if none is switched on.
func model(c config.Knowledge) *knowledge.Model {
	key, name := os.Getenv("OPENAI_API_KEY"), os.Getenv("OPENAI_MODEL")
	if key == "" || name == "" {
		return nil
	}
	return &knowledge.Model{BaseURL: os.Getenv("OPENAI_BASE_URL"), Key: key, Name: name, PerDay: max(cmp.Or(c.ModelPerDay, modelPerDay), 0)}
}

// storeTimeout bounds how long a question waits for the store: the answer works without
// it.
const storeTimeout = 2 * time.Second

// siteCards returns a function that reads the answers which operators have added, each
// time anew. A question creates no database.
func siteCards(svc *ops.Service, database string) func() []cards.Card {
	return func() []cards.Card {
		if _, err := os.Stat(database); err != nil && !strings.Contains(database, "://") {
			return nil
		}
		ctx, done := context.WithTimeout(context.Background(), storeTimeout)
		defer done()
		all, err := answers.SiteCards(ctx, svc)
		if err != nil {
			return nil // doctor reports what is wrong with the store
		}
		list := make([]cards.Card, len(all))
		for i, k := range all {
			list[i] = k.Card
		}
		return list
	}
}

// docVectors is the kind of document that holds the cards' vectors.
const docVectors = "card-vectors"

// embedder returns the embedding model that ranks together with the index, or nil if
// OPENAI_EMBED_MODEL names none.
func embedder(svc *ops.Service) *knowledge.Embedder {
	key, name := os.Getenv("OPENAI_API_KEY"), os.Getenv("OPENAI_EMBED_MODEL")
	if key == "" || name == "" {
		return nil
	}
	return &knowledge.Embedder{
		BaseURL: os.Getenv("OPENAI_BASE_URL"), Key: key, Name: name,
		Load: func(ctx context.Context, key string) (vectors []byte, ok bool) {
			ok, err := svc.Docs().Get(ctx, docVectors, key, time.Time{}, &vectors)
			return vectors, ok && err == nil
		},
		Save: func(ctx context.Context, key string, vectors []byte) error {
			return svc.Docs().Put(ctx, docVectors, key, vectors, time.Time{})
		},
	}
}

// aboutJob returns the job that a change created or affected, and the digest of the
// script that it submitted.
func aboutJob(e ops.AuditEntry) (job, script string) {
	var made struct {
		JobID  *string `json:"job_id"`
		Script string  `json:"script"`
	}
	var named struct {
		Job string `json:"job"`
	}
	if raw, err := json.Marshal(e.Out); err == nil {
		_ = json.Unmarshal(raw, &made) // an output without a job id leaves it nil
	}
	if raw, err := json.Marshal(e.In); err == nil {
		_ = json.Unmarshal(raw, &named)
	}
	if made.JobID != nil && *made.JobID != "" {
		if made.Script != "" {
			script = consent.Digest(made.Script)
		}
		return *made.JobID, script
	}
	return named.Job, ""
}

// notConfirmed begins the result of a call that only asked its person.
const notConfirmed = "not confirmed: "

// auditor writes every change to the store, with secrets masked.
func auditor(svc *ops.Service, log *slog.Logger) func(context.Context, ops.AuditEntry) {
	return func(ctx context.Context, e ops.AuditEntry) {
		st, err := svc.Store()
		if err != nil {
			return // the operation itself has reported this, or needed no store
		}
		input, _ := json.Marshal(e.In)
		result := "done"
		if what, ok := e.Out.(interface{ Undone() string }); ok && what.Undone() != "" {
			result = what.Undone()
		}
		if e.Err != nil {
			result = e.Err.Error()
			if e := ops.AsError(e.Err); e.Confirm && !e.MayBeDone() {
				result = notConfirmed + result
			}
		}
		entry := store.Entry{
			At: e.At, Surface: string(e.Who.Surface), Who: e.Who.ID, Owner: e.Who.User, Agent: e.Who.Agent,
			Op: e.Op, Input: redact.Text(string(input)), Result: redact.Text(result), Agreed: e.Agreed,
		}
		entry.Job, entry.Script = aboutJob(e)
		if err := st.AddAudit(context.WithoutCancel(ctx), entry); err != nil {
			// The log is then the only place where the entry is kept.
			log.Error("the audit trail could not be written", "error", err, "at", entry.At,
				"who", entry.Who, "agent", entry.Agent, "owner", entry.Owner, "surface", entry.Surface, "op", entry.Op, "job", entry.Job,
				"script_sha256", entry.Script, "agreed", entry.Agreed, "input", entry.Input, "result", entry.Result)
		}
	}
}
