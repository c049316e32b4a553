// Command sbom writes the software bill of materials of a Go binary in CycloneDX 1.5
// JSON: the linked modules, as the binary itself lists them.
//
//	go run ./packaging/sbom BINARY OUT.json
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
)

// A document is the part of CycloneDX that is written.
type document struct {
	Format     string      `json:"bomFormat"`
	Version    string      `json:"specVersion"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// PURL is the package URL, by which scanners look up vulnerabilities.
	PURL string `json:"purl,omitempty"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY OUT.json")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(binary, out string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	doc := document{
		Format: "CycloneDX", Version: "1.5",
		Metadata:   metadata{component{Type: "application", Name: info.Main.Path, Version: info.Main.Version}},
		Components: []component{{Type: "library", Name: "std", Version: info.GoVersion, PURL: "pkg:golang/std@" + info.GoVersion}},
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		doc.Components = append(doc.Components, component{"library", m.Path, m.Version, "pkg:golang/" + m.Path + "@" + m.Version})
	}
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(b, '\n'), 0o644)
}
