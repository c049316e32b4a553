// Command image writes a container image of a static binary, for `docker load`, podman
// or skopeo, without a registry or a container engine. The image contains the binary,
// the certificates of this machine, and the licences.
//
//	go run ./packaging/image BINARY OUT.tar [VERSION]
package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// nobody is the uid that the server runs as; a number needs no entry in /etc/passwd.
const nobody = 65532

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: image BINARY OUT.tar [VERSION]")
		os.Exit(2)
	}
	version := "latest"
	if len(os.Args) > 3 {
		version = os.Args[3]
	}
	if err := write(os.Args[1], os.Args[2], version); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func write(binary, out, version string) error {
	files, err := layer(map[string]file{
		"usr/bin/megatron-ops":               {from: binary, mode: 0o755},
		"etc/ssl/certs/ca-certificates.crt":  {from: "/etc/ssl/certs/ca-certificates.crt", mode: 0o644},
		"usr/share/doc/megatron-ops/NOTICE":  {from: "dist-files/NOTICE", mode: 0o644},
		"usr/share/doc/megatron-ops/LICENSE": {from: "LICENSE", mode: 0o644},
	})
	if err != nil {
		return err
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil })
	if err != nil {
		return err
	}
	img, err := mutate.AppendLayers(empty.Image, l)
	if err != nil {
		return err
	}
	img, err = mutate.Config(img, v1.Config{
		Entrypoint:   []string{"/usr/bin/megatron-ops"},
		Cmd:          []string{"serve", "--listen", "0.0.0.0:8080"},
		Env:          []string{"PATH=/usr/bin", "MEGATRON_OPS_STATE_DIR=/var/lib/megatron-ops"},
		User:         fmt.Sprint(nobody),
		WorkingDir:   "/var/lib/megatron-ops",
		Volumes:      map[string]struct{}{"/var/lib/megatron-ops": {}},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
	})
	if err != nil {
		return err
	}
	tag, err := name.NewTag("megatron-ops:" + version)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(out, tag, img)
}

// A file is the source of a file of the layer, and its mode.
type file struct {
	from string
	mode int64
}

// layer returns the tar of the files and of the state's folder. It contains no times,
// so that the same binary gives the same layer.
func layer(files map[string]file) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	state := &tar.Header{Typeflag: tar.TypeDir, Name: "var/lib/megatron-ops/", Mode: 0o700, Uid: nobody, Gid: nobody}
	tmp := &tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}
	for _, dir := range []*tar.Header{state, tmp} {
		if err := w.WriteHeader(dir); err != nil {
			return nil, err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		content, err := os.ReadFile(files[path].from)
		if err != nil {
			return nil, err
		}
		if err := w.WriteHeader(&tar.Header{Name: path, Mode: files[path].mode, Size: int64(len(content))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
