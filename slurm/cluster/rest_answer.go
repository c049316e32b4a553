package cluster

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// An answer is what every request is answered with; each uses its own part.
type answer struct {
	Nodes      []map[string]any `json:"nodes"`
	Partitions []map[string]any `json:"partitions"`
	// Reservations are those that the token may see.
	Reservations []map[string]any `json:"reservations"`
	// Statistics are the controller's own.
	Statistics map[string]any `json:"statistics"`
	// JobID is a number after a submission, and "" after a change in v0.0.40.
	JobID  any `json:"job_id"`
	Errors []struct {
		Error       string `json:"error"`
		Description string `json:"description"`
	} `json:"errors"`
	// Status is what became of each job that was to be ended, from v0.0.42 on:
	// there a refusal comes with HTTP 200 and no errors.
	Status []struct {
		Error struct {
			Text    string `json:"string"`
			Message string `json:"message"`
			Code    int    `json:"code"`
		} `json:"error"`
	} `json:"status"`
	// Results is what became of each element of an array that was to be changed.
	Results []struct {
		Error string `json:"error"`
		Code  int    `json:"error_code"`
		Why   string `json:"why"`
	} `json:"results"`
}

// submitted is the number of the job that a submission made, 0 for none.
func (a answer) submitted() int64 {
	n, ok := a.JobID.(float64)
	if !ok || n != float64(int64(n)) {
		return 0
	}
	return int64(n)
}

// Slurm's own numbers for what has been done already.
const (
	alreadyDone  = 2021 // ESLURM_ALREADY_DONE
	alreadyEnded = 2022 // ESLURM_JOB_FINISHED
)

// refusals are the words of all that went wrong, each once.
func (a answer) refusals() (said []string) {
	add := func(words ...string) {
		for _, w := range words {
			if w != "" && w != "No error" && !slices.Contains(said, w) {
				said = append(said, w)
			}
		}
	}
	for _, e := range a.Errors {
		if words := cmp.Or(e.Error, e.Description); words != "No error" {
			add(words, e.Description)
		}
	}
	for _, s := range a.Status {
		if s.Error.Code != 0 && s.Error.Code != alreadyDone {
			add(cmp.Or(s.Error.Message, s.Error.Text, fmt.Sprintf("Slurm's error %d", s.Error.Code)))
		}
	}
	// An array some of whose elements have ended is changed all the same.
	changed := slices.ContainsFunc(a.Results, func(r struct {
		Error string `json:"error"`
		Code  int    `json:"error_code"`
		Why   string `json:"why"`
	},
	) bool {
		return r.Code == 0
	})
	for _, r := range a.Results {
		if r.Code != 0 && !(changed && r.Code == alreadyEnded) {
			add(cmp.Or(r.Error, r.Why, fmt.Sprintf("Slurm's error %d", r.Code)))
		}
	}
	return said
}

// call makes a request of the API; path is behind the version.
func (r *REST) call(ctx context.Context, op, method, path string, body any) (answer, error) {
	version, err := r.api(ctx)
	if err != nil {
		return answer{}, named(op, err)
	}
	return r.callVersion(ctx, version, op, method, path, body)
}

func (r *REST) callVersion(ctx context.Context, version int, op, method, path string, body any) (a answer, err error) {
	text, status, err := r.exchange(ctx, op, method, fmt.Sprintf("/slurm/v0.0.%d/%s", version, path), body)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, unreadable(op, status, cut(string(text), 500), err)
	}
	return a, r.refused(ctx, op, method, status, a)
}

// unreadable is the error of an answer that is no JSON.
func unreadable(op string, status int, text string, err error) *slurm.Error {
	if status >= 400 {
		return slurm.FromStderr(op, strings.TrimSpace(text))
	}
	return &slurm.Error{Op: op, Kind: slurm.Broken, Msg: lang.Text{EN: "slurmrestd's answer cannot be read: %s", ZH: "无法读取 slurmrestd 的返回：%s"}.With(err)}
}

// Limits on a list of jobs: thirty thousand are some 200 MB, of which one job at a
// time is held.
const (
	listLimit = time.Minute
	maxList   = 2 << 30
)

// list asks for jobs and hands each on as it comes.
func (r *REST) list(ctx context.Context, op, area, path string, each func(map[string]any)) error {
	version, err := r.api(ctx)
	if err != nil {
		return named(op, err)
	}
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	res, err := r.send(ctx, op, http.MethodGet, fmt.Sprintf("/%s/v0.0.%d/%s", area, version, path), nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body := bufio.NewReader(io.LimitReader(res.Body, maxList))
	head, _ := body.Peek(500)
	text := string(head)
	a, err := decodeList(body, each)
	switch {
	case err != nil && (ctx.Err() != nil || errors.Is(err, io.ErrUnexpectedEOF)):
		return &slurm.Error{Op: op, Kind: slurm.Unreachable, Msg: lang.Text{EN: "the answer broke off: %s", ZH: "返回内容中断：%s"}.With(err)}
	case err != nil:
		return unreadable(op, res.StatusCode, text, err)
	}
	return r.refused(ctx, op, http.MethodGet, res.StatusCode, a)
}

// decodeList reads an answer whose jobs are handed on one by one.
func decodeList(body io.Reader, each func(map[string]any)) (a answer, err error) {
	dec := json.NewDecoder(body)
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return a, errors.Join(lang.Text{EN: "it is no JSON object", ZH: "不是 JSON 对象"}.Err(), err)
	}
	rest := map[string]json.RawMessage{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return a, err
		}
		if key != "jobs" {
			var v json.RawMessage
			if err := dec.Decode(&v); err != nil {
				return a, err
			}
			rest[fmt.Sprint(key)] = v
			continue
		}
		if t, err := dec.Token(); err != nil || t == nil {
			continue // null
		} else if t != json.Delim('[') {
			return a, lang.Text{EN: "its jobs are no list", ZH: "其中的 jobs 不是列表"}.Err()
		}
		for dec.More() {
			var job map[string]any
			if err := dec.Decode(&job); err != nil {
				return a, err
			}
			each(job)
		}
		if _, err := dec.Token(); err != nil {
			return a, err
		}
	}
	if _, err := dec.Token(); err != nil {
		return a, errors.Join(io.ErrUnexpectedEOF, err)
	}
	text, err := json.Marshal(rest)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(text, &a)
}

// refused tells what an answer says went wrong.
func (r *REST) refused(ctx context.Context, op, method string, status int, a answer) error {
	// A status alone tells nothing: 22.05 says 500 for a job that does not exist,
	// and lists an error beside a job that was accepted and is held.
	if a.submitted() > 0 {
		return nil
	}
	if said := a.refusals(); len(said) > 0 {
		if e := r.badToken(ctx, op, method, said); e != nil {
			return e
		}
		return slurm.FromStderr(op, strings.Join(said, "\n"))
	}
	if status >= 400 {
		return &slurm.Error{Op: op, Kind: slurm.Broken, Msg: lang.Text{EN: "slurmrestd answered with status %d and no word", ZH: "slurmrestd 返回状态 %d，没有任何说明"}.With(status)}
	}
	return nil
}

// badToken tells by what slurmrestd said whether it does not take the token; nil
// where that is not so. No release says it plainly: 22.05 speaks of an unspecified
// error, 23.11 of a database that it cannot open in our name, later ones of
// authentication.
func (r *REST) badToken(ctx context.Context, op, method string, said []string) *slurm.Error {
	words := strings.Join(said, "; ")
	switch {
	case strings.Contains(words, "uthentication"):
	case said[0] == "Unspecified error" && method == http.MethodGet:
	case strings.Contains(words, "openapi_get_db_conn"):
		why := r.tokenFault(ctx)
		if why == "" {
			return &slurm.Error{Op: op, Kind: slurm.Unreachable, Msg: lang.Same(words), Fix: lang.Text{
				EN: "either slurmdbd does not run, or the token was signed with another key than this cluster's: get a new one with `scontrol token`",
				ZH: "slurmdbd 未运行，或令牌由其他密钥签发：请用 `scontrol token` 重新获取令牌",
			}}
		}
		words += "; " + why
	default:
		return nil
	}
	return slurm.FromStderr(op, "Authentication failure: "+words)
}

// tokenFault tells what can be seen to be wrong with the token without the key
// that it was signed with; "" where nothing can.
func (r *REST) tokenFault(ctx context.Context) string {
	token, err := r.Token(ctx)
	if err != nil {
		return err.Error()
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "the token is no JSON web token"
	}
	var claims struct {
		Expires float64 `json:"exp"`
		User    string  `json:"sun"`
	}
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return "the token is no JSON web token"
	}
	if end := time.Unix(int64(claims.Expires), 0); claims.Expires > 0 && time.Now().After(end) {
		return "the token ended at " + end.UTC().Format(time.RFC3339)
	}
	if claims.User != "" && claims.User != r.user {
		return "the token is " + claims.User + "'s, not " + r.user + "'s"
	}
	return ""
}
