package checkpoint

import (
	"archive/zip"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/pickle"
)

// What dist_checkpointing of Megatron-LM writes into the folder of an iteration,
// beside the files of tensors.
const (
	backendFile = "metadata.json" // at the end of saving: which backend wrote it
	indexFile   = ".metadata"     // torch.distributed.checkpoint's index of what is where
	commonFile  = "common.pt"     // before core 0.19: what is not of one rank
	// commonPart is the object that core 0.19 puts there instead, among the others.
	commonPart = "common_state/shard_0_1"
)

// shardedObject is how dist_checkpointing names an object in the index, and nobody
// else does.
var shardedObject = regexp.MustCompile(`/shard_[0-9.]+_[0-9.]+$`)

// readBackend is the backend that a folder's metadata.json names.
func readBackend(dir string) (Format, error) {
	text, err := os.ReadFile(filepath.Join(dir, backendFile))
	if err != nil {
		return "", err
	}
	var b struct {
		Backend Format `json:"sharded_backend"`
	}
	err = json.Unmarshal(text, &b)
	return b.Backend, err
}

// readDistributed reads a checkpoint with an index of its own.
func (c *Checkpoint) readDistributed() {
	index, err := c.readIndex()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.fault(Fault{File: indexFile, Missing: true})
	case err != nil:
		c.fault(Fault{File: indexFile, Unreadable: true})
	}
	parts := partsOf(index)
	named := func(name string) (part, bool) {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		if i < 0 {
			return part{}, false
		}
		return parts[i], true
	}
	if c.Format == FSDPDTensor && hasShardedObject(index) {
		c.Format = TorchDist // which lacks the last file alone
	}
	if c.Format == TorchDist {
		switch _, err := readBackend(c.Path); {
		case errors.Is(err, fs.ErrNotExist) && index != nil: // without an index that is what is said
			c.fault(Fault{File: backendFile, Missing: true})
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			c.fault(Fault{File: backendFile, Unreadable: true})
		}
		at, inIndex := named(commonPart)
		if !c.readCommon(inIndex || index == nil) && inIndex {
			if v, err := c.readPart(at); err == nil { // a file that is cut short is told below
				if list, ok := v.(*pickle.List); ok && len(list.Items) == 1 {
					c.readState(list.Items[0])
				}
			}
		}
	}
	if at, there := named("args"); there && c.Saved == (Layout{}) {
		if v, err := c.readPart(at); err == nil {
			c.readState(&pickle.Dict{Keys: []any{"args"}, Values: []any{v}})
		}
	}
	c.readTensors(index)
	c.checkFiles(parts)
}

// readCommon reads common.pt, and reports whether it is there. Where nothing else
// holds the same it must be.
func (c *Checkpoint) readCommon(elsewhere bool) (there bool) {
	v, err := torchFile(filepath.Join(c.Path, commonFile))
	switch {
	case err == nil:
		c.readState(v)
	case !errors.Is(err, fs.ErrNotExist):
		c.fault(Fault{File: commonFile, Unreadable: true})
	case !elsewhere:
		c.fault(Fault{File: commonFile, Missing: true})
	}
	return !errors.Is(err, fs.ErrNotExist)
}

func (c *Checkpoint) readIndex() (any, error) {
	in, err := os.Open(filepath.Join(c.Path, indexFile))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return reader.Read(in)
}

// readTensors counts the tensors that the index names.
func (c *Checkpoint) readTensors(index any) {
	names, ok := pickle.Attribute(index, "state_dict_metadata").(*pickle.Dict)
	if !ok {
		return
	}
	optimizer := false
	for i, k := range names.Keys {
		name, _ := k.(string)
		if isOptimizer(name) {
			optimizer = true
			continue
		}
		size, ok := sizeOf(pickle.Attribute(names.Values[i], "size"))
		if !ok || !isParameter(name) {
			continue
		}
		c.Tensors++
		c.Parameters += product(size)
	}
	c.Optimizer = &optimizer
}

// sizeOf is a torch.Size, which is made from a tuple.
func sizeOf(v any) (size []int64, ok bool) {
	o, ok := v.(*pickle.Object)
	if ok && len(o.Args) == 1 {
		v = o.Args[0]
	}
	items, ok := v.(*pickle.List)
	if !ok {
		return nil, false
	}
	for _, s := range items.Items {
		n, ok := s.(int64)
		if !ok {
			return nil, false
		}
		size = append(size, n)
	}
	return size, true
}

// hasShardedObject reports whether dist_checkpointing wrote the index.
func hasShardedObject(index any) bool {
	names, ok := pickle.Attribute(index, "state_dict_metadata").(*pickle.Dict)
	if !ok {
		return false
	}
	return slices.ContainsFunc(names.Keys, func(k any) bool {
		name, _ := k.(string)
		return shardedObject.MatchString(name)
	})
}

// A part is where a tensor's piece or an object lies.
type part struct {
	name, file   string
	from, length int64
}

// partsOf are the parts that the index names, within the folder.
func partsOf(index any) (all []part) {
	data, ok := pickle.Attribute(index, "storage_data").(*pickle.Dict)
	if !ok {
		return nil
	}
	for i, v := range data.Values {
		p := part{}
		p.name, _ = pickle.Attribute(data.Keys[i], "fqn").(string)
		p.file, _ = pickle.Attribute(v, "relative_path").(string)
		p.from, _ = pickle.Attribute(v, "offset").(int64)
		p.length, _ = pickle.Attribute(v, "length").(int64)
		if filepath.IsLocal(p.file) && p.from >= 0 && p.length >= 0 {
			all = append(all, p)
		}
	}
	return all
}

// checkFiles holds the files against the index, which says how far each must reach.
func (c *Checkpoint) checkFiles(parts []part) {
	reach := map[string]int64{}
	for _, p := range parts {
		reach[p.file] = max(reach[p.file], p.from+p.length)
	}
	for file, want := range reach {
		st, err := os.Stat(filepath.Join(c.Path, file))
		switch {
		case err != nil:
			c.fault(Fault{File: file, Want: want, Missing: true})
		case st.Size() < want:
			c.fault(Fault{File: file, Want: want, Have: st.Size()})
		}
	}
}

// readPart reads an object of the run where it is a part of a larger file.
func (c *Checkpoint) readPart(p part) (any, error) {
	in, err := os.Open(filepath.Join(c.Path, p.file))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	z, err := zip.NewReader(io.NewSectionReader(in, p.from, p.length), p.length)
	if err != nil {
		return nil, err
	}
	return torchZip(z)
}

// mostChunks bounds how many files of one tensor are looked for.
const mostChunks = 1 << 20

// readZarr reads a checkpoint of one folder a tensor, and a file a piece.
func (c *Checkpoint) readZarr() {
	c.readCommon(false)
	optimizer := false
	in := os.DirFS(c.Path)
	arrays, _ := fs.Glob(in, "*/.zarray")
	for _, file := range arrays {
		name := path.Dir(file)
		var array struct{ Shape, Chunks []int64 }
		text, err := fs.ReadFile(in, file)
		if err != nil || json.Unmarshal(text, &array) != nil || len(array.Shape) != len(array.Chunks) {
			c.fault(Fault{File: file, Unreadable: true})
			continue
		}
		if isOptimizer(name) {
			optimizer = true
		} else if isParameter(name) {
			c.Tensors++
			c.Parameters += product(array.Shape)
		}
		if missing := missingChunk(filepath.Join(c.Path, name), array.Shape, array.Chunks); missing != "" {
			c.fault(Fault{File: filepath.Join(name, missing), Missing: true})
		}
	}
	c.Optimizer = &optimizer
}

// missingChunk is the first of an array's files that is not there: "0.0", "0.1" and
// so on, one a piece.
func missingChunk(dir string, shape, chunks []int64) string {
	counts := make([]int64, len(shape))
	for i := range shape {
		if chunks[i] < 1 {
			return ""
		}
		counts[i] = (shape[i] + chunks[i] - 1) / chunks[i]
	}
	all := product(counts)
	if all > mostChunks {
		return ""
	}
	for n := range all {
		words := make([]string, len(counts))
		for i := len(counts) - 1; i >= 0; i-- {
			words[i] = strconv.FormatInt(n%counts[i], 10)
			n /= counts[i]
		}
		name := cmp.Or(strings.Join(words, "."), "0") // of a single number
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return name
		}
	}
	return ""
}

func product(of []int64) int64 {
	n := int64(1)
	for _, v := range of {
		n *= v
	}
	return n
}

func isOptimizer(tensor string) bool {
	return strings.Contains(tensor, "optimizer.") || strings.Contains(tensor, "exp_avg")
}

func isParameter(tensor string) bool {
	return !strings.Contains(tensor, "rng_state") && !strings.HasSuffix(tensor, "_extra_state")
}
