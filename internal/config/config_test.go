package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// load reads text as the configuration file in a folder. The home folder has none.
func load(t *testing.T, text string, env ...string) (Config, error) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "megatron-ops.yaml"), []byte(text), 0o600))
	return Load(dir, func(name string) string {
		for _, e := range env {
			if value, ok := strings.CutPrefix(e, name+"="); ok {
				return value
			}
		}
		return ""
	})
}

func TestAFaultNamesItsKeyFileAndLine(t *testing.T) {
	for text, want := range map[string]string{
		"lang: en\nqqqqqq: x\n":                                                 "qqqqqq: is not a configuration key (FILE, line 2) | its keys are cluster, clusters, knowledge, lang, mcp, notify, site, slack, store, web",
		"lang: en\nclustr: x\n":                                                 "clustr: is not a configuration key (FILE, line 2) | did you mean cluster?",
		"clusters:\n  big:\n    kind: sssh\n":                                   `clusters.big.kind: "sssh" is not a valid value for this key (FILE, line 3) | did you mean ssh? one of local, cli, ssh, rest`,
		"notify:\n  us: {kind: pigeon}\n":                                       `notify.us.kind: "pigeon" is not a valid value for this key (FILE, line 2) | one of webhook, mail, feishu, dingtalk, wecom, teams, discord, mattermost`,
		"notify:\n  us: {url: x}\n":                                             "notify.us.kind: must be given (FILE, line 2) | one of webhook, mail, feishu, dingtalk, wecom, teams, discord, mattermost",
		"notify:\n  us: {kind: mail, events: [end, never]}\n":                   `notify.us.events: "never" is not a valid value for this key (FILE, line 2) | one of start, end, fail, alarm, ask`,
		"notify:\n  us: {kind: mail, lang: fr}\n":                               `notify.us.lang: "fr" is not a valid value for this key (FILE, line 2) | did you mean en? one of en, zh`,
		"clusters:\n  big:\n    host: login\n":                                  "clusters.big.kind: must be given (FILE, line 2) | one of local, cli, ssh, rest",
		"clusters:\n  big:\n    kind: cli\n    site:\n      gpuu: h100":         "clusters.big.site.gpuu: is not a configuration key (FILE, line 5) | did you mean gpu?",
		"site: {gpus_per_node: many}\n":                                         `site.gpus_per_node: "many" is not a valid value for this key (FILE, line 1) | a whole number, such as 8`,
		"site:\n  shared: /lustre\n":                                            `site.shared: "/lustre" is not a list (FILE, line 2) | write it as [one, two]`,
		"slack: on\n":                                                           `slack: "on" is not a map (FILE, line 1) | write name: value below it, indented`,
		"slack:\n  approval:\n    gpu_hours: few\n":                             `slack.approval.gpu_hours: "few" is not a valid value for this key (FILE, line 3) | a number, such as 0.5; at least 0`,
		"slack:\n  approval:\n    expires: 3s\n":                                `slack.approval.expires: "3s" is not a duration of a minute or more (FILE, line 3) | a duration such as 24h`,
		"mcp:\n  tokens:\n    - id: t\n      file: /t\n      operater: true\n":  "mcp.tokens.operater: is not a configuration key (FILE, line 5) | did you mean operator?",
		"slack:\n  approval:\n    gpus: -5\n":                                   `slack.approval.gpus: "-5" is not a valid value for this key (FILE, line 3) | a whole number, such as 8; at least 0`,
		"slack:\n  approval: {hours: '5'}\n":                                    `slack.approval.hours: "5" is not a valid value for this key (FILE, line 2) | a number, such as 0.5; at least 0`,
		"lang: en\nsite:\n  time: 4h\n":                                         `site.time: "4h" does not have the expected form (FILE, line 3) | give minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS, such as 04:00:00`,
		"site: {gpu_request: gpu}\n":                                            `site.gpu_request: "gpu" is not one of the allowed words; did you mean gpus? (FILE, line 1) | give one of gpus-per-node, gres, gpus`,
		"site: &s\n  container:\n    runtime: pyxi\n":                           `site.container.runtime: "pyxi" is not one of the allowed words; did you mean pyxis? (FILE, line 3) | give one of none, pyxis, enroot, singularity, apptainer, docker`,
		"clusters:\n  big:\n    kind: cli\n    site: {time: soon}\n":            `clusters.big.site.time: "soon" does not have the expected form (FILE, line 4) | give minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS, such as 04:00:00`,
		"site: {gpus_per_node: -1}\n":                                           `site.gpus_per_node: "-1" is out of range (FILE, line 1) | give a number from 0 to 65536`,
		"mcp:\n  tokens:\n    - {file: /a, id: ci}\n    - {file: /b, id: ci}\n": `mcp.tokens[1].id: "ci" is another token's id too (FILE, line 4) | give each token an id of its own`,
		"mcp:\n  tokens:\n    - file: /a\n      user: ci\n":                     "mcp.tokens[0].id: must be given (FILE, line 3) | a name of its own, which the audit log shows",
		"mcp: {read_only: perhaps}\n":                                           `mcp.read_only: "perhaps" is not a valid value for this key (FILE, line 1) | true or false`,
		"site: {driver: 580}\n":                                                 `site.driver: "580" is not a valid value for this key (FILE, line 1) | text, in quotes: "580"`,
		"site: {presets: {ib: {NCCL_IB_TIMEOUT: 22}}}\n":                        `site.presets.ib.NCCL_IB_TIMEOUT: "22" is not a valid value for this key (FILE, line 1) | text, in quotes: "22"`,
		"site: {account: yes, partition: true}\n":                               `site.partition: "true" is not a valid value for this key (FILE, line 1) | text, in quotes: "true"`,
		"cluster: [a, b]\n":                                                     `cluster: "[" is not a valid value for this key (FILE, line 1) | one value, without brackets`,
		"web:\n  url: ops.example.org\n":                                        `web.url: "ops.example.org" is not a valid value for this key (FILE, line 2) | an address such as https://ops.example.org`,
		"clusters:\n  api: {kind: rest, url: \"login1:6820\"}\n":                `clusters.api.url: "login1:6820" is not a valid value for this key (FILE, line 2) | an address such as https://ops.example.org`,
		"lang: en\n---\ncluster: slurm\n":                                       "configuration: is more than one document (FILE, line 2) | take --- out",
		"site:\n\taccount: a\n":                                                 "configuration: is not YAML: found character '\t' that cannot start any token (FILE, line 2) | mend it there; lines are name: value, indented with spaces, not with tabs",
		"cluster: slurm\nlang: [\n":                                             "configuration: is not YAML near \"[\": sequence end token ']' not found (FILE, line 2) | mend it there; lines are name: value, indented with spaces, not with tabs",
	} {
		_, err := load(t, text)
		require.Error(t, err, text)
		e := ops.AsError(err)
		file := ""
		if i := strings.Index(e.Error(), "("); i >= 0 {
			file, _, _ = strings.Cut(e.Error()[i+1:], ",")
		}
		require.Equal(t, "megatron-ops.yaml", filepath.Base(file), text)
		require.Equal(t, want, strings.ReplaceAll(e.Error()+" | "+fix(e), file, "FILE"), text)
	}
}

func TestEveryFaultIsToldAtOnce(t *testing.T) {
	_, err := load(t, "clustr: x\nsite: {gpuu: h100}\n")
	require.Len(t, ops.AsError(err).More, 1)
	_, err = load(t, "clustr: x\nsite: {time: 4h}\nclusters: {a: {kind: 5}}\nmcp: {tokens: [{file: /a}]}\n")
	require.Len(t, ops.AsError(err).More, 3, "what has the wrong form does not hide what cannot be meant, and is told once: %v", err)
}

func TestALanguageThatIsNoneIsRefused(t *testing.T) {
	_, err := load(t, "lang: en\n", "MEGATRON_OPS_LANG=de")
	require.Equal(t, `MEGATRON_OPS_LANG: "de" is not a supported language | en or zh`, err.Error()+" | "+fix(ops.AsError(err)))
	require.Equal(t, ops.BadInput, ops.AsError(err).Code)
	_, err = load(t, "", "MEGATRON_OPS_LANG=zh_CN.UTF-8")
	require.NoError(t, err)
}

// Some editors begin a file with a byte order mark.
func TestAByteOrderMarkIsNoPartOfTheFirstKey(t *testing.T) {
	c, err := load(t, "\ufefflang: zh\n")
	require.NoError(t, err)
	require.Equal(t, "zh", c.Lang)
}

func TestAConfigurationOfEveryKindIsTaken(t *testing.T) {
	c, err := load(t, `
lang: zh
site: &site {gpu: h100, driver: 580.65.06, presets: {nccl: {NCCL_DEBUG: INFO, NCCL_IB_TIMEOUT: "22"}}, container: {runtime: pyxis}}
clusters:
  big: {kind: ssh, host: login, site: *site}
slack:
  links: {U1: alice}
  approval: {gpu_hours: 12.5, partitions: [big], expires: 2h}
mcp: {tokens: [{file: /t, id: ci}]}
`)
	require.NoError(t, err)
	require.Equal(t, "h100", c.Clusters["big"].Site.GPU)
	require.Equal(t, 12.5, c.Slack.Approval.GPUHours)
	_, err = load(t, "")
	require.NoError(t, err, "an empty file says nothing")
	_, err = load(t, "# ours\n")
	require.NoError(t, err)
}

func TestADefaultClusterThatIsNoneNamesWhoSaidSo(t *testing.T) {
	c, err := load(t, "lang: en\ncluster: slurn\n")
	require.NoError(t, err)
	require.Contains(t, c.NoCluster(c.Cluster, []string{"local", "slurm"}).Error(), "megatron-ops.yaml, line 2)")
	require.Equal(t, "did you mean slurm? there are local, slurm", fix(ops.AsError(c.NoCluster(c.Cluster, []string{"local", "slurm"}))))
	c, err = load(t, "", "MEGATRON_OPS_CLUSTER=far")
	require.NoError(t, err)
	require.Equal(t, `MEGATRON_OPS_CLUSTER: "far" is not configured`, c.NoCluster(c.Cluster, []string{"local"}).Error())
	require.Equal(t, `cluster: "flag" is not configured`, c.NoCluster("flag", []string{"local"}).Error())
}

func TestAFileThatCannotBeReadIsNamed(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "megatron-ops.yaml"), 0o700))
	_, err := Load(dir, func(string) string { return "" })
	require.ErrorContains(t, err, filepath.Join(dir, "megatron-ops.yaml"))
	require.NotContains(t, err.Error(), "MEGATRON_OPS_CONFIG", "nobody set it")
	_, err = Load(dir, func(name string) string { return map[string]string{"MEGATRON_OPS_CONFIG": "/no/such.yaml"}[name] })
	require.ErrorContains(t, err, "MEGATRON_OPS_CONFIG: no such file or directory (/no/such.yaml)")
}

func fix(e *ops.Error) string { return ops.AsError(e).In(lang.EN).Fix }

// Of several files the nearest is read. A file that is named explicitly is the only one
// read, and must exist.
func TestWhichFileIsRead(t *testing.T) {
	dir, xdg, home := t.TempDir(), t.TempDir(), t.TempDir()
	near, far := filepath.Join(dir, "megatron-ops.yaml"), filepath.Join(home, ".config", "megatron-ops", "megatron-ops.yaml")
	between := filepath.Join(xdg, "megatron-ops", "megatron-ops.yaml")
	for _, file := range []string{near, between, far} {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte("lang: zh\n"), 0o600))
	}
	for _, c := range []struct {
		name, dir string
		env       map[string]string
		read      string
	}{
		{"where one is", dir, map[string]string{"XDG_CONFIG_HOME": xdg, "HOME": home}, near},
		{"one's own", t.TempDir(), map[string]string{"XDG_CONFIG_HOME": xdg, "HOME": home}, between},
		{"one's own, by default", t.TempDir(), map[string]string{"HOME": home}, far},
		{"the one that is named", dir, map[string]string{"HOME": home, "MEGATRON_OPS_CONFIG": between}, between},
		{"one that is named and not there", dir, map[string]string{"HOME": home, "MEGATRON_OPS_CONFIG": filepath.Join(xdg, "none.yaml")}, "none"},
	} {
		got, err := Load(c.dir, func(name string) string { return c.env[name] })
		if c.read == "none" {
			require.ErrorContains(t, err, "none.yaml", c.name)
			continue
		}
		require.NoError(t, err, c.name)
		require.Equal(t, c.read, got.Path, c.name)
	}
}
