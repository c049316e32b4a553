package outbox

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// A message with Bytes shows them as a picture in its blocks, so that an edit can replace the
// picture. The file is uploaded first without being shared. Slack then processes it for some
// seconds, during which it refuses the block as "invalid slack file"
// (docs.slack.dev/reference/block-kit/composition-objects/slack-file-object).

const (
	docPicture = "picture" // message key → picture, while its upload is not shown yet
	// pictureWait is the time between two attempts to show the picture, and pictureTries is the
	// number of attempts.
	pictureWait  = 2 * time.Second
	pictureTries = 10
)

// A picture is a file that was uploaded and that Slack does not show in a message yet.
type picture struct {
	ID    string `json:"id"`
	Looks int    `json:"looks"`
}

// show posts or edits a message that is a picture.
func (s *Sender) show(ctx context.Context, api *slack.Client, key string, o Message) (store.SlackRef, error) {
	var p picture
	if _, err := s.cfg.Store.Get(ctx, docPicture, key, s.cfg.Now(), &p); err != nil {
		return store.SlackRef{}, err
	}
	if p.ID == "" {
		f, err := api.UploadFileContext(ctx, slack.UploadFileParameters{
			Reader: bytes.NewReader(o.Bytes), FileSize: len(o.Bytes), Filename: o.File.Name, Title: o.File.Title, AltTxt: o.File.Title,
		})
		if err != nil {
			return store.SlackRef{}, err
		}
		p.ID = f.ID
	}
	shown := o
	shown.Bytes = nil
	shown.Blocks = answer.BlocksJSON([]slack.Block{
		slack.NewImageBlockSlackFile(&slack.SlackFileObject{ID: p.ID}, o.File.Title, "", answer.Label(o.File.Title)),
	})
	ref, err := s.call(ctx, key, shown)
	if err == nil {
		return ref, s.cfg.Store.Delete(ctx, docPicture, key)
	}
	if p.Looks++; blocksRefused(err) && p.Looks < pictureTries {
		err = waitError{pictureWait, "Slack has not looked at the picture yet"}
	}
	return ref, errors.Join(err, s.cfg.Store.Put(ctx, docPicture, key, p, s.cfg.Now().Add(24*time.Hour)))
}
