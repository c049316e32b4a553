package diagnose

import "strings"

// hydraEnds is Hydra's last line after it refused a configuration, or after the
// traceback of the program that it called.
const hydraEnds = "Set the environment variable HYDRA_FULL_ERROR=1"

// blank ends a block of lines. One under a heading belongs to what was told before.
func (st *stream) blank() {
	if st.block != nil && (st.told == nil || !strings.HasSuffix(st.block.text, ":")) {
		st.told = st.block
	}
	st.block = nil
}

// refusal notes what Hydra said before its last line where no exception did: it
// refuses a configuration in a sentence of its own, and prints no traceback.
func (s *scanner) refusal(st *stream) {
	st.blank()
	said := st.told
	st.told = nil
	if said == nil || st.raised != nil && st.raised.off >= said.off {
		return
	}
	_, text := untag(said.text)
	if strings.Contains(text, header) || strings.HasPrefix(text, "Error executing job") {
		return
	}
	s.add(&event{off: said.off, raw: said.text, text: text, tag: said.tag, class: BadArgs, weight: specific})
}
