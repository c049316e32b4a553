// Command secretrules writes the rules of gitleaks, a maintained secret scanner (MIT),
// as the JSON Lines that internal/redact embeds.
//
//	go run ./tools/secretrules v8.30.1 > internal/redact/gitleaks.jsonl
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp/syntax"
	"slices"

	"github.com/BurntSushi/toml"
)

// leftOut are rules about names rather than a secret's own form: our forms for named
// settings and JSON web tokens are tested against training logs.
var leftOut = []string{"generic-api-key", "jwt", "jwt-base64", "hashicorp-tf-password", "curl-auth-user"}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: secretrules VERSION > internal/redact/gitleaks.jsonl")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "secretrules:", err)
		os.Exit(1)
	}
}

func write(version string) error {
	answer, err := exec.Command("go", "mod", "download", "-json", "github.com/zricethezav/gitleaks/v8@"+version).Output()
	if err != nil {
		return err
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(answer, &module); err != nil {
		return err
	}
	var config struct {
		Rules []struct {
			ID          string   `toml:"id"`
			Regex       string   `toml:"regex"`
			SecretGroup int      `toml:"secretGroup"`
			Keywords    []string `toml:"keywords"`
		} `toml:"rules"`
	}
	if _, err := toml.DecodeFile(filepath.Join(module.Dir, "config", "gitleaks.toml"), &config); err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for _, r := range config.Rules {
		if r.Regex == "" || slices.Contains(leftOut, r.ID) {
			continue
		}
		re, err := syntax.Parse(r.Regex, syntax.Perl)
		if err != nil {
			return fmt.Errorf("%s: %w", r.ID, err)
		}
		// As in gitleaks: without a group of its own, the first group is the secret.
		// But a group that repeats holds only its last repetition, so the whole match
		// is hidden.
		group := r.SecretGroup
		if group == 0 && re.MaxCap() > 0 && !repeatsGroup(re) {
			group = 1
		}
		if err := out.Encode(map[string]any{"id": r.ID, "regex": r.Regex, "group": group, "keywords": r.Keywords}); err != nil {
			return err
		}
	}
	return nil
}

// repeatsGroup reports whether a group of re is repeated.
func repeatsGroup(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpRepeat, syntax.OpStar, syntax.OpPlus:
		return re.MaxCap() > 0
	}
	return slices.ContainsFunc(re.Sub, repeatsGroup)
}
