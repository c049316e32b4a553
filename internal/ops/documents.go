package ops

import (
	"context"
	"encoding/json"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// Docs returns the part of the database that keeps small documents. Where there is no
// database, or it cannot be opened, each use of it returns that error.
func (s *Service) Docs() store.Documents {
	if s.Store == nil {
		return noDocuments{&Error{Code: Failed, Message: lang.Text{EN: "there is no store", ZH: "没有可用的数据库"}}}
	}
	st, err := s.Store()
	if err != nil {
		return noDocuments{err}
	}
	return st.Slack()
}

// noDocuments stands for a database that cannot be used.
type noDocuments struct{ why error }

func (d noDocuments) Put(context.Context, string, string, any, time.Time) error { return d.why }

func (d noDocuments) Add(context.Context, string, string, any, time.Time, time.Time) (bool, error) {
	return false, d.why
}

func (d noDocuments) Get(context.Context, string, string, time.Time, any) (bool, error) {
	return false, d.why
}

func (d noDocuments) Take(context.Context, string, string, time.Time, any) (bool, error) {
	return false, d.why
}

func (d noDocuments) Replace(
	context.Context, string, string, json.RawMessage, any, time.Time, ...store.SlackMessage,
) (bool, error) {
	return false, d.why
}

func (d noDocuments) Claim(context.Context, string, string, string, time.Time) (string, error) {
	return "", d.why
}

func (d noDocuments) Delete(context.Context, string, string) error { return d.why }

func (d noDocuments) Keys(context.Context, string, time.Time) ([]string, error) { return nil, d.why }

// ListDocs returns the documents of a kind that are valid at now, ordered by their keys. A
// document that cannot be read is left out.
func ListDocs[T any](ctx context.Context, docs store.Documents, kind string, now time.Time) ([]T, error) {
	keys, err := docs.Keys(ctx, kind, now)
	var list []T
	for _, k := range keys {
		var one T
		if ok, err := docs.Get(ctx, kind, k, now, &one); err == nil && ok {
			list = append(list, one)
		}
	}
	return list, err
}
