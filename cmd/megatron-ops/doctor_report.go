package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

const maxFailedChanges = 20

// report prints a text to attach to a ticket: what runs here, how it is configured,
// what the checks say, and which changes failed last. Secrets are removed from the
// finished text, whichever part contains them.
func (sh *shell) report(ctx context.Context, cfg config.Config, svc *ops.Service, checks []check) error {
	var b strings.Builder
	part := func(title lang.Text) { fmt.Fprintf(&b, "\n## %s\n\n", title.In(sh.lang)) }
	fmt.Fprintf(&b, "# megatron-ops %s\n\n%s/%s, %s, %d CPU, %s\n", version(), runtime.GOOS, runtime.GOARCH, runtime.Version(), runtime.NumCPU(),
		time.Now().Format(time.RFC3339))

	part(lang.Text{EN: "Checks", ZH: "检查"})
	for _, c := range checks {
		if c.err != nil {
			fmt.Fprintf(&b, "- wrong %s: %v\n", c.what, lang.Said(c.err).In(sh.lang))
		} else {
			fmt.Fprintf(&b, "- ok %s %s\n", c.what, c.note)
		}
	}
	part(lang.Text{EN: "Configuration", ZH: "配置"})
	fmt.Fprintf(&b, "%s\n\n", cfg.Path)
	if text, err := yaml.Marshal(withoutSecrets(asData(cfg), "")); err == nil {
		b.Write(text)
	}
	part(lang.Text{EN: "Variables that are set", ZH: "已设置的变量"})
	for _, e := range slices.Sorted(slices.Values(os.Environ())) {
		name, _, _ := strings.Cut(e, "=")
		if ourVariables.MatchString(name) {
			fmt.Fprintf(&b, "- %s\n", name)
		}
	}
	if svc != nil {
		part(lang.Text{EN: "Clusters", ZH: "集群"})
		for _, name := range slices.Sorted(maps.Keys(svc.Clusters)) {
			fmt.Fprintf(&b, "- %s: %s %s\n", name, svc.Clusters[name].Kind(), slurmVersion(ctx, svc.Clusters[name]))
		}
		part(lang.Text{EN: "Store", ZH: "数据库"})
		st, err := svc.Store()
		if err == nil {
			err = reportStore(ctx, &b, st, sh.lang)
		}
		if err != nil {
			fmt.Fprintf(&b, "%v\n", lang.Said(err).In(sh.lang))
		}
	}
	_, err := fmt.Fprint(sh.out, removeSecrets(b.String(), knownSecrets(cfg)))
	return err
}

// ourVariables matches the names of variables that configure this program.
var ourVariables = lazy.New(`^(?:MEGATRON_OPS|SLACK|OPENAI|OTEL|SLURM|XDG|LC|LANG|CREDENTIALS_DIRECTORY)`)

// asData returns cfg as its file would contain it.
func asData(cfg config.Config) any {
	raw, err := json.Marshal(cfg)
	if err != nil {
		return nil
	}
	var all any
	_ = json.Unmarshal(raw, &all) // it was marshalled just now
	return all
}

// withoutSecrets masks the values whose name means a secret.
func withoutSecrets(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = withoutSecrets(x, k)
		}
	case []any:
		for i, x := range v {
			v[i] = withoutSecrets(x, name)
		}
	case string:
		if v != "" && redact.SecretName(name) {
			return redact.Mask
		}
	}
	return v
}

// knownSecrets returns the values that must not appear in any text.
func knownSecrets(cfg config.Config) []string {
	var all []string
	add := func(text string) {
		if text = strings.TrimSpace(text); len(text) >= 6 {
			all = append(all, text)
		}
	}
	for _, name := range secretNames {
		add(os.Getenv(name))
	}
	files := []string{cfg.Slack.Install.KeyFile}
	for _, t := range cfg.MCP.Tokens {
		files = append(files, t.File)
	}
	for _, t := range cfg.Notify {
		add(t.URL)
		files = append(files, t.URLFile, t.SecretFile)
	}
	for _, c := range cfg.Clusters {
		files = append(files, c.TokenFile)
	}
	if state, err := config.StateDir(os.Getenv); err == nil {
		files = append(files, ownTokenFile(state))
	}
	for _, name := range files {
		if text, err := os.ReadFile(name); err == nil {
			add(string(text))
		}
	}
	return all
}

var (
	// urlPattern matches a URL. Only its scheme and host may be shown: a webhook's
	// secret is in the path, a database's before the host.
	urlPattern = lazy.New(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>` + "`" + `]+`)
	// dsnSecret matches a setting of a DSN that is not a URL.
	dsnSecret = lazy.New(`(?i)\b(?:password|passwd|pwd|sslpassword|user)\s*=\s*(?:'(?:[^'\\]|\\.)*'|\S+)`)
)

// removeSecrets removes known secrets and whatever looks like a secret from a text, and
// shortens each URL to its host.
func removeSecrets(text string, known []string) string {
	text = redact.Values(known...)(text)
	text = urlPattern.ReplaceAllStringFunc(text, func(u string) string {
		scheme, rest, _ := strings.Cut(u, "://")
		host, _, more := strings.Cut(rest[strings.LastIndex(rest, "@")+1:], "/")
		host, _, query := strings.Cut(host, "?")
		if strings.Contains(rest, "@") || more || query {
			return scheme + "://" + host + "/…"
		}
		return scheme + "://" + host
	})
	text = dsnSecret.ReplaceAllStringFunc(text, func(s string) string {
		name, _, _ := strings.Cut(s, "=")
		return name + "=" + redact.Mask
	})
	var lines redact.Stream
	all := strings.Split(text, "\n")
	for i, line := range all {
		all[i] = lines.Line(redact.Clean(line))
	}
	return strings.Join(all, "\n")
}

func slurmVersion(ctx context.Context, cl ops.Cluster) string {
	cli, ok := cl.(*cluster.CLI)
	if !ok || cl.Kind() != "cli" {
		return ""
	}
	bin, _ := cluster.FindCommands(cli.Environ())
	if bin == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "sinfo"), "--version")
	cmd.Env = cli.Environ() // newer versions print nothing without their configuration
	out, err := cmd.Output()
	if err != nil {
		return lang.Said(err).EN
	}
	return strings.TrimSpace(string(out))
}

// reportStore describes what the store holds and which changes failed last, without the
// changes' inputs.
func reportStore(ctx context.Context, b *strings.Builder, st *store.Store, l lang.Lang) error {
	z, err := st.Sizes(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "%s, schema %d, %d bytes\n", z.Kind, z.Schema, z.Bytes)
	for _, table := range slices.Sorted(maps.Keys(z.Rows)) {
		fmt.Fprintf(b, "- %s: %d\n", table, z.Rows[table])
	}
	fmt.Fprintf(b, "\n## %s\n\n", lang.Text{EN: "Changes that failed last", ZH: "最近失败的变更"}.In(l))
	entries, err := st.Audit(ctx, 500)
	if err != nil {
		return err
	}
	told := 0
	for _, e := range entries {
		if e.Result == "done" || strings.HasPrefix(e.Result, notConfirmed) || told == maxFailedChanges {
			continue
		}
		told++
		fmt.Fprintf(b, "- %s %s (%s): %s\n", e.At.Format(time.RFC3339), e.Op, e.Surface, e.Result)
	}
	return nil
}
