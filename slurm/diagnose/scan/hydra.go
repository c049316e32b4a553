package scan

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// hydraEnds begins Hydra's last line, after it refused a configuration or after the traceback of the
// program that it called.
const hydraEnds = "Set the environment variable HYDRA_FULL_ERROR=1"

// hydraCalled begins Hydra's line above the traceback of the program that it called.
const hydraCalled = "Error executing job"

// blank ends a block of lines. A block below a heading belongs to the block before it.
func (st *stream) blank() {
	if st.block != nil && (st.told == nil || !strings.HasSuffix(st.block.Text, ":")) {
		st.told = st.block
	}
	st.block = nil
}

// refusal records Hydra's message before its last line, unless an exception was printed. Hydra refuses
// a configuration in one sentence, without a traceback.
func (s *scanner) refusal(st *stream) {
	st.blank()
	said := st.told
	st.told = nil
	called := st.called // the called program raised an exception, whose message may have several blocks
	st.called = 0
	if said == nil || st.raised != nil && (st.raised.Off >= said.Off || called > 0 && st.raised.Off >= called) {
		return
	}
	_, text := logline.CutTag(said.Text)
	if strings.Contains(text, python.Header) || strings.HasPrefix(text, hydraCalled) {
		return
	}
	s.add(&Event{Off: said.Off, Raw: said.Text, Text: text, Tag: said.Tag, Class: outcome.BadArgs, Weight: pattern.Specific})
}
