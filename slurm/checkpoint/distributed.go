package checkpoint

import (
	"archive/zip"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/megatron-ops/megatron-ops/internal/pickle"
)

// The files that Megatron-LM's dist_checkpointing writes into the folder of an
// iteration, beside those of tensors.
const (
	backendFile = "metadata.json" // written at the end of a save: the name of the backend
	indexFile   = ".metadata"     // torch.distributed.checkpoint's index of tensors and files
	commonFile  = "common.pt"     // before core 0.19: the state that belongs to no single rank
	// commonPart is the object of the index that replaces commonFile since core 0.19.
	commonPart = "common_state/shard_0_1"
)

// shardedObject matches the names of objects in an index of dist_checkpointing. No
// other writer uses such names.
var shardedObject = regexp.MustCompile(`/shard_[0-9.]+_[0-9.]+$`)

// readBackend returns the backend that metadata.json in dir names.
func (c *Checkpoint) readBackend(dir string) (Format, error) {
	text, err := c.in.ReadFile(filepath.Join(dir, backendFile), mostJSON)
	if err != nil {
		return "", err
	}
	var b struct {
		Backend Format `json:"sharded_backend"`
	}
	err = json.Unmarshal(text, &b)
	return b.Backend, err
}

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
		c.Format = TorchDist // only metadata.json, the last file of a save, is missing
	}
	if c.Format == TorchDist {
		switch _, err := c.readBackend(c.Path); {
		case errors.Is(err, fs.ErrNotExist) && index != nil: // without an index, the missing index is the fault to report
			c.fault(Fault{File: backendFile, Missing: true})
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			c.fault(Fault{File: backendFile, Unreadable: true})
		}
		at, inIndex := named(commonPart)
		if !c.readCommon(inIndex || index == nil) && inIndex {
			if v, err := c.readPart(at); err == nil { // checkFiles reports a file that is cut short
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

// readCommon reads common.pt and reports whether the file exists. Where it is missing
// and elsewhere is false, nothing else holds its content, and that is a fault.
func (c *Checkpoint) readCommon(elsewhere bool) (there bool) {
	v, err := c.torchFile(filepath.Join(c.Path, commonFile))
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
	in, err := c.in.Open(filepath.Join(c.Path, indexFile))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return reader.Read(in)
}

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

// sizeOf returns the dimensions of a torch.Size, which is pickled as a call with a
// tuple.
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

// A part is the place of a tensor's piece or of an object in the files.
type part struct {
	name, file   string
	from, length int64
}

// partsOf returns the parts in the index whose files are within the checkpoint's
// folder.
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

// checkFiles checks that each file is as long as the index requires.
func (c *Checkpoint) checkFiles(parts []part) {
	reach := map[string]int64{}
	for _, p := range parts {
		reach[p.file] = max(reach[p.file], p.from+p.length)
	}
	for file, want := range reach {
		st, err := c.in.Stat(filepath.Join(c.Path, file))
		switch {
		case err != nil:
			c.fault(Fault{File: file, Want: want, Missing: true})
		case st.Size() < want:
			c.fault(Fault{File: file, Want: want, Have: st.Size()})
		}
	}
}

// readPart reads a pickled object that is a part of a larger file.
func (c *Checkpoint) readPart(p part) (any, error) {
	in, err := c.in.Open(filepath.Join(c.Path, p.file))
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

// mostChunks is the largest number of files of one tensor that are checked.
const mostChunks = 1 << 20

// readZarr reads a checkpoint with one folder for each tensor and one file for each
// chunk.
func (c *Checkpoint) readZarr() {
	c.readCommon(false)
	optimizer := false
	entries, _ := c.in.ReadDir(c.Path)
	for _, e := range entries {
		name, file := e.Name(), path.Join(e.Name(), ".zarray")
		var array struct{ Shape, Chunks []int64 }
		text, err := c.in.ReadFile(filepath.Join(c.Path, file), mostJSON)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
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
		if missing := c.missingChunk(filepath.Join(c.Path, name), array.Shape, array.Chunks); missing != "" {
			c.fault(Fault{File: filepath.Join(name, missing), Missing: true})
		}
	}
	c.Optimizer = &optimizer
}

// missingChunk returns the first missing file of an array, or "". The files are named
// by the chunk's indices: "0.0", "0.1" and so on.
func (c *Checkpoint) missingChunk(dir string, shape, chunks []int64) string {
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
		name := cmp.Or(strings.Join(words, "."), "0") // "0" for an array without dimensions
		if _, err := c.in.Stat(filepath.Join(dir, name)); err != nil {
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
