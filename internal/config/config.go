// Package config reads megatron-ops.yaml and the MEGATRON_OPS_ variables: the clusters,
// the site's defaults, and where state is kept.
package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/near"
	"github.com/megatron-ops/megatron-ops/internal/notify"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/policy"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A Config is the content of the configuration file. The zero Config applies without a
// file.
type Config struct {
	// Cluster is the default cluster's name.
	Cluster string `json:"cluster,omitempty"`
	// Lang is en or zh.
	Lang string `json:"lang,omitempty" enum:"en,zh"`
	// Store is a postgres:// URL, or the path of a SQLite file; by default a file in
	// the state directory.
	Store string `json:"store,omitempty"`
	// Site fills in what a specification omits, on every cluster.
	Site      job.Site           `json:"site,omitzero"`
	Clusters  map[string]Cluster `json:"clusters,omitempty"`
	Slack     Slack              `json:"slack,omitzero"`
	MCP       MCP                `json:"mcp,omitzero"`
	Knowledge Knowledge          `json:"knowledge,omitzero"`
	Web       Web                `json:"web,omitzero"`
	// Notify names services outside of Slack that are notified of jobs: docs/notify.md.
	Notify map[string]notify.Target `json:"notify,omitempty"`
	// Path is the file that was read; empty if there is none.
	Path string `json:"-"`
	// clusterSource is what names the default cluster: a line of the file, or a
	// variable.
	clusterSource job.FieldError
}

// NoCluster returns the error for a default cluster that is not among known. It says
// what named the cluster: a flag, a variable or a line of the file.
func (c Config) NoCluster(name string, known []string) error {
	e := c.clusterSource
	if e.Field == "" || name != c.Cluster {
		e = job.FieldError{Field: "cluster"}
	}
	e.Value, e.Msg = name, lang.Text{EN: "is not configured", ZH: "没有配置"}
	e.Fix = lang.Text{EN: "one of %s, or a cluster of that name below clusters in %s", ZH: "可用值：%s；或在 %s 的 clusters 下配置该集群"}.With(strings.Join(known, ", "), cmp.Or(c.Path, "megatron-ops.yaml"))
	if meant := near.Word(name, known, 3); meant != "" {
		e.Fix = lang.Text{EN: "did you mean %s? there are %s", ZH: "是否想写 %s？现有：%s"}.With(meant, strings.Join(known, ", "))
	}
	return ops.FieldErrors(&e)
}

// A Cluster is one place where jobs can run.
type Cluster struct {
	// Kind is local, cli, ssh or rest.
	Kind string `json:"kind" enum:"local,cli,ssh,rest"`
	// SlurmConf is the SLURM_CONF of kind cli.
	SlurmConf string `json:"slurm_conf,omitempty"`
	// SlurmBin is the folder of Slurm's commands if they are not on the PATH: on this
	// machine (cli), on the host (ssh), or on the nodes (rest).
	SlurmBin string `json:"slurm_bin,omitempty"`
	// Host is the name in ssh_config to which kind ssh connects. SSHConfig is a file to
	// read instead of the person's own.
	Host      string `json:"host,omitempty"`
	SSHConfig string `json:"ssh_config,omitempty"`
	// SyncTo is the folder of kind ssh into which `sync` copies trees. SyncExclude is
	// what to exclude in addition to .gitignore and .megatronopsignore.
	SyncTo      string   `json:"sync_to,omitempty"`
	SyncExclude []string `json:"sync_exclude,omitempty"`
	// TokenInName appends the token that finds a submission again to the job's name,
	// for sites whose own plugin rewrites comments (kinds cli and ssh).
	TokenInName bool `json:"token_in_name,omitempty"`
	// URL and TokenFile are slurmrestd's address and the file with the JWT, for kind
	// rest.
	URL       string `json:"url,omitempty" form:"url"`
	TokenFile string `json:"token_file,omitempty"`
	// DefaultPartition is the partition of jobs that name none, for kind rest: most
	// versions of slurmrestd do not report it.
	DefaultPartition string `json:"default_partition,omitempty"`
	// ActAs lets the server act as the person who asks through Slack or HTTP: by sudo
	// (cli; `megatron-ops sudoers` prints the rule), by that person's login (ssh), or
	// by that person's token (rest, %u in token_file).
	ActAs bool     `json:"act_as,omitempty"`
	Site  job.Site `json:"site,omitzero"`
}

// Slack says who may do what in Slack, by Slack's ids. The tokens are variables:
// SLACK_BOT_TOKEN, SLACK_APP_TOKEN, SLACK_SIGNING_SECRET.
type Slack struct {
	// Operators may act on everybody's jobs and approve, Viewers may only read: users
	// (U…), groups (S…) or channels (C…).
	Operators []string `json:"operators,omitempty"`
	Viewers   []string `json:"viewers,omitempty"`
	// Channels, if not empty, are the only ones in which jobs may be changed.
	Channels []string `json:"channels,omitempty"`
	// Read says who may see jobs, logs and nodes: linked, which means people who are
	// linked to a cluster user (the default), or everyone. ReadIn overrides it for
	// single channels.
	Read   string            `json:"read,omitempty" enum:"linked,everyone"`
	ReadIn map[string]string `json:"read_in,omitempty"`
	// Links maps a Slack user, as U… or T…/U…, to a cluster user.
	Links map[string]string `json:"links,omitempty"`
	// LinkDir is the folder, mode 1777, to which `megatron-ops link` writes codes.
	LinkDir string `json:"link_dir,omitempty"`
	// LinkProof is what such a file must contain: munge, a MUNGE credential over the
	// code (the default if munge is installed), or file, the code itself in a file that
	// the person owns.
	LinkProof   string `json:"link_proof,omitempty" enum:"munge,file"`
	MungeSocket string `json:"munge_socket,omitempty"`
	// LinkDomain is the host of pages that show jobs.
	LinkDomain string `json:"link_domain,omitempty"`
	PerMinute  int    `json:"per_minute,omitempty"`
	// Install lets workspaces install the app themselves, if SLACK_CLIENT_ID and
	// SLACK_CLIENT_SECRET are set instead of SLACK_BOT_TOKEN.
	Install Install `json:"install,omitzero"`
	// Approval makes an operator approve larger submissions.
	Approval Approval `json:"approval,omitzero"`
}

// An Install says how workspaces install the app.
type Install struct {
	// URL is this server's address as browsers and Slack reach it.
	URL string `json:"url,omitempty" form:"url"`
	// KeyFile is the file of the key that encrypts the workspaces' tokens: 32 bytes in
	// base64, mode 600. MEGATRON_OPS_SLACK_KEY is the key itself and takes precedence.
	KeyFile string `json:"key_file,omitempty"`
}

// An Approval says which submissions an operator must approve. The zero value requires
// no approval.
type Approval struct {
	Channel string `json:"channel,omitempty"`
	// Limits bound what needs no approval: gpu_hours, gpus and hours. They also name
	// the partitions, QOS and accounts that always need one.
	policy.Limits
	// Agents requires approval for every write of an agent, even within the limits.
	Agents bool `json:"agents,omitempty"`
	// Expires is how long a request waits for a decision, such as 24h, the default.
	Expires string `json:"expires,omitempty"`
}

// Life returns how long a request waits for a decision, or 0 for the default; ok is false where
// that is no time to wait, which Load refuses.
func (a Approval) Life() (d time.Duration, ok bool) {
	if a.Expires == "" {
		return 0, true
	}
	d, err := time.ParseDuration(a.Expires)
	return d, err == nil && d >= time.Minute
}

// Knowledge says what answers are based on besides the built-in cards. OPENAI_API_KEY
// and OPENAI_MODEL switch a model on.
type Knowledge struct {
	// Folders hold Markdown pages of the site, such as a wiki or runbooks. They take
	// precedence.
	Folders []string `json:"folders,omitempty"`
	// ModelPerDay bounds how many answers a day a model words for one person; 0 means
	// 200, a negative number none.
	ModelPerDay int `json:"model_per_day,omitempty"`
}

// Web says how browsers reach the page. On loopback the page needs no configuration.
type Web struct {
	// URL is this server's address as browsers reach it, such as
	// https://ops.example.org.
	URL string `json:"url,omitempty" form:"url"`
	// Operators are the cluster users who may act on others' jobs on the page and
	// decide about requests.
	Operators []string `json:"operators,omitempty"`
	// OIDC lets people sign in at the site's own provider. Slack lets them sign in with
	// Slack, as the cluster user to whom they are linked.
	OIDC  OIDC      `json:"oidc,omitzero"`
	Slack WebClient `json:"slack,omitzero"`
}

// A WebClient is the page as a client of an OpenID provider. The file holds its secret,
// with mode 600; a public client has none.
type WebClient struct {
	ClientID         string `json:"client_id,omitempty"`
	ClientSecretFile string `json:"client_secret_file,omitempty"`
}

// OIDC is the site's OpenID provider.
type OIDC struct {
	Issuer           string `json:"issuer,omitempty" form:"url"`
	ClientID         string `json:"client_id,omitempty"`
	ClientSecretFile string `json:"client_secret_file,omitempty"`
	// Scopes are requested besides openid.
	Scopes []string `json:"scopes,omitempty"`
	// Claim is the claim that identifies a person; by default sub.
	Claim string `json:"claim,omitempty"`
	// Users maps values of that claim to cluster users.
	Users map[string]string `json:"users,omitempty"`
}

// MCP says who may use /mcp, and what agents are offered. Without tokens and an issuer,
// serve creates one token for reading in the state folder.
type MCP struct {
	Hosts   []string `json:"hosts,omitempty"`
	Origins []string `json:"origins,omitempty"`
	Tokens  []Token  `json:"tokens,omitempty"`
	OAuth   OAuth    `json:"oauth,omitzero"`
	// Toolsets and Tools are what agents are offered, on standard input too. Without
	// them agents get the core operations, and over HTTP whatever a client's headers
	// choose. ReadOnly removes what changes something.
	Toolsets []string `json:"toolsets,omitempty"`
	Tools    []string `json:"tools,omitempty"`
	ReadOnly bool     `json:"read_only,omitempty"`
	// Confirm says who confirms what an agent changes: "person", the default, or
	// "fallback-token", which accepts a token from clients that cannot ask their
	// person.
	Confirm string `json:"confirm,omitempty" enum:"person,fallback-token"`
	// Roots are the absolute folders below which an agent may name logs to read and
	// files to examine.
	Roots []string `json:"roots,omitempty"`
}

// A Token is the file of a bearer token, with mode 600, and the caller that it stands
// for.
type Token struct {
	File     string `json:"file"`
	ID       string `json:"id"`
	User     string `json:"user,omitempty"` // cluster user; empty may only read
	Operator bool   `json:"operator,omitempty"`
}

// OAuth names an external issuer of tokens.
type OAuth struct {
	Issuer   string            `json:"issuer,omitempty" form:"url"`
	Resource string            `json:"resource,omitempty"`
	JWKS     string            `json:"jwks,omitempty" form:"url"`
	Users    map[string]string `json:"users,omitempty"` // subject → cluster user
}

// FallbackToken is the value of mcp.confirm that lets a token stand in for a person
// whom the agent's client cannot ask.
const FallbackToken = "fallback-token"

// Load reads the first existing file: in dir, in the user's configuration directory, or
// in /etc/megatron-ops. Then it reads the variables of getenv.
func Load(dir string, getenv func(string) string) (Config, error) {
	var c Config
	files := []string{filepath.Join(dir, "megatron-ops.yaml")}
	if home := userConfigDir(getenv); home != "" {
		files = append(files, filepath.Join(home, "megatron-ops", "megatron-ops.yaml"))
	}
	files = append(files, "/etc/megatron-ops/megatron-ops.yaml")
	if f := getenv("MEGATRON_OPS_CONFIG"); f != "" {
		files = []string{f}
	}
	for i, f := range files {
		b, err := os.ReadFile(f)
		if errors.Is(err, fs.ErrNotExist) && (i < len(files)-1 || len(files) > 1) {
			continue
		}
		if err != nil {
			return c, unreadableError(err, f, getenv)
		}
		read, err := decode(b, f, &c)
		if err != nil {
			return c, ops.FieldErrors(err)
		}
		c.Path = f
		c.clusterSource = job.FieldError{Field: "cluster", File: f, Line: read.lineOf("cluster")}
		break
	}
	if err := CheckLang(getenv); err != nil {
		return c, err
	}
	if getenv("MEGATRON_OPS_CLUSTER") != "" {
		c.clusterSource = job.FieldError{Field: "MEGATRON_OPS_CLUSTER"}
	}
	for env, field := range map[string]*string{
		"MEGATRON_OPS_CLUSTER": &c.Cluster, "MEGATRON_OPS_LANG": &c.Lang, "MEGATRON_OPS_STORE": &c.Store,
	} {
		if v := getenv(env); v != "" {
			*field = v
		}
	}
	return c, nil
}

// unreadableError is the error for a file that cannot be read, or that a variable names
// and that does not exist.
func unreadableError(err error, file string, getenv func(string) string) error {
	e := &job.FieldError{
		Field: "configuration", File: file, Msg: lang.Same(fileErrorText(err)),
		Fix: lang.Text{EN: "give yourself the right to read it, or move it away", ZH: "请赋予读取权限，或移走该文件"},
	}
	if getenv("MEGATRON_OPS_CONFIG") != "" {
		e.Field, e.Fix = "MEGATRON_OPS_CONFIG", lang.Text{EN: "name a file that can be read, or unset the variable", ZH: "请给出可读取的文件，或取消该变量"}
	}
	return ops.FieldErrors(e)
}

// fileErrorText is the system's error text for a file, without the file's name.
func fileErrorText(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// Check returns what is wrong with the text of a configuration file.
func Check(text []byte) error {
	var c Config
	_, err := decode(text, "", &c)
	return err
}

// CheckLang returns the error about a MEGATRON_OPS_LANG that names no language.
func CheckLang(getenv func(string) string) error {
	v := getenv("MEGATRON_OPS_LANG")
	if _, ok := lang.Parse(v); ok || v == "" {
		return nil
	}
	return ops.FieldErrors(&job.FieldError{
		Field: "MEGATRON_OPS_LANG", Value: v, Msg: lang.Text{EN: "is not a supported language", ZH: "不是支持的语言"}, Fix: lang.Text{EN: "en or zh", ZH: "en 或 zh"},
	})
}

// decode reads YAML by the JSON names of the fields, so that a site's profile has the
// same names everywhere. Each key or value that does not fit is an error with its line.
func decode(b []byte, file string, c *Config) (*document, error) {
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	t, err := parse(b, file)
	if err != nil {
		return t, err
	}
	t.compare(t.body, reflect.TypeFor[Config](), "", "")
	asJSON, err := yaml.YAMLToJSON(b)
	if err == nil {
		err = json.Unmarshal(asJSON, c) // what does not fit is left out
	}
	if err != nil && len(t.errs) == 0 {
		return t, &job.FieldError{Field: "configuration", File: file, Msg: lang.Same(firstLine(err))}
	}
	if t.checkMeaning(*c); len(t.errs) > 0 {
		return t, t.errs
	}
	return t, nil
}

func userConfigDir(getenv func(string) string) string {
	if d := getenv("XDG_CONFIG_HOME"); d != "" {
		return d
	}
	if h := getenv("HOME"); h != "" {
		return filepath.Join(h, ".config")
	}
	return ""
}

// StateDir returns the folder of the state: MEGATRON_OPS_STATE_DIR, else
// $XDG_STATE_HOME/megatron-ops, else ~/.local/state/megatron-ops.
func StateDir(getenv func(string) string) (string, error) {
	if d := getenv("MEGATRON_OPS_STATE_DIR"); d != "" {
		return filepath.Abs(d)
	}
	if d := getenv("XDG_STATE_HOME"); d != "" {
		return filepath.Join(d, "megatron-ops"), nil
	}
	if h := getenv("HOME"); h != "" {
		return filepath.Join(h, ".local", "state", "megatron-ops"), nil
	}
	return "", &ops.Error{Code: ops.BadInput, Field: "MEGATRON_OPS_STATE_DIR", Message: lang.Text{EN: "there is no home directory to keep state in", ZH: "没有可存放状态的主目录"}, Fix: lang.Text{EN: "set MEGATRON_OPS_STATE_DIR", ZH: "请设置 MEGATRON_OPS_STATE_DIR"}}
}
