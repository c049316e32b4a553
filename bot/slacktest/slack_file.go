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

// slackFile checks the file of an image block: it has an id or a URL, and not both
// (docs.slack.dev/reference/block-kit/composition-objects/slack-file-object).
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

// pictureRefused returns Slack's error for a message with a picture that Slack cannot show: the
// file is unknown, not completely uploaded, not an image, or not processed yet, as on the first
// attempt. The caller holds the lock.
func (s *Server) pictureRefused(a m) m {
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
