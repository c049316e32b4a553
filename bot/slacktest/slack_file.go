package slacktest

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	fileID     = regexp.MustCompile(`^F[A-Z0-9]{8,}$`)
	imageKinds = []string{".png", ".jpg", ".jpeg", ".gif"}
)

// slackFile checks the file of an image block: by its id or its address, and not by
// both (docs.slack.dev/reference/block-kit/composition-objects/slack-file-object).
func (c *checker) slackFile(b m, w string) {
	file, ok := b["slack_file"].(m)
	if !ok {
		return
	}
	id, url := str(file["id"]), str(file["url"])
	switch {
	case b["image_url"] != nil:
		c.say(w, "has image_url and slack_file")
	case (id == "") == (url == ""):
		c.say(w+".slack_file", "needs id or url, and not both")
	case id != "" && !fileID.MatchString(id):
		c.say(w+".slack_file.id", "%q is no file's id", id)
	}
}

// unshown is what Slack says of a message with a picture that it cannot show: its file
// is not known, not wholly uploaded, no image, or not looked at yet, as at first. The
// lock is held.
func (s *Server) unshown(a m) m {
	refused := m{"error": "invalid_blocks", "response_metadata": m{"messages": []string{"[ERROR] invalid slack file"}}}
	blocks, _ := a["blocks"].([]any)
	for _, x := range blocks {
		b, _ := x.(m)
		file, ok := b["slack_file"].(m)
		if !ok {
			continue
		}
		st := s.files[str(file["id"])]
		if st == nil || !st.Done || !slices.Contains(imageKinds, strings.ToLower(path.Ext(st.Name))) {
			return refused
		}
		if i := slices.IndexFunc(s.faults, func(f *Fault) bool { return f.Method == "slack_file" }); i >= 0 {
			return refused
		}
		if !st.Looked {
			st.Looked = true
			return refused
		}
	}
	return nil
}
