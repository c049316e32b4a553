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

// An answer is the body of every slurmrestd response. Each request uses its own part.
type answer struct {
	Nodes      []map[string]any `json:"nodes"`
	Partitions []map[string]any `json:"partitions"`
	// Reservations are the reservations that the token's user may see.
	Reservations []map[string]any `json:"reservations"`
	// Statistics are the controller's figures, as sdiag shows them.
	Statistics map[string]any `json:"statistics"`
	// JobID is a number after a submission; after a change, v0.0.40 writes "".
	JobID  any `json:"job_id"`
	Errors []struct {
		Error       string `json:"error"`
		Description string `json:"description"`
	} `json:"errors"`
	// Status is the result for each job of a cancellation, from v0.0.42 on. These
	// versions report a refusal here, with HTTP status 200 and no errors.
	Status []struct {
		Error struct {
			Text    string `json:"string"`
			Message string `json:"message"`
			Code    int    `json:"code"`
		} `json:"error"`
	} `json:"status"`
	// Results is the result for each element of an array after a change.
	Results []elementResult `json:"results"`
}

// An elementResult is the result of a change of one array element.
type elementResult struct {
	Error string `json:"error"`
	Code  int    `json:"error_code"`
	Why   string `json:"why"`
}

// submitted returns the id of the job that a submission created, 0 for none.
func (a answer) submitted() int64 {
	n, ok := a.JobID.(float64)
	if !ok || n != float64(int64(n)) {
		return 0
	}
	return int64(n)
}

// Slurm's error numbers for an effect that had already happened.
const (
	alreadyDone  = 2021 // ESLURM_ALREADY_DONE
	alreadyEnded = 2022 // ESLURM_JOB_FINISHED
)

// refusals returns the distinct error texts of the answer.
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
	// The change of an array is successful where only elements that have ended refuse
	// it.
	changed := slices.ContainsFunc(a.Results, func(r elementResult) bool { return r.Code == 0 })
	for _, r := range a.Results {
		if r.Code != 0 && !(changed && r.Code == alreadyEnded) {
			add(cmp.Or(r.Error, r.Why, fmt.Sprintf("Slurm's error %d", r.Code)))
		}
	}
	return said
}

// call makes a request of the API; path is the part after the version.
func (r *REST) call(ctx context.Context, op, method, path string, body any) (answer, error) {
	version, err := r.api(ctx)
	if err != nil {
		return answer{}, withOp(op, err)
	}
	return r.callVersion(ctx, version, op, method, path, body)
}

func (r *REST) callVersion(ctx context.Context, version int, op, method, path string, body any) (a answer, err error) {
	text, status, err := r.exchange(ctx, op, method, fmt.Sprintf("/slurm/v0.0.%d/%s", version, path), body)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, unreadable(op, status, truncate(string(text), 500), err)
	}
	return a, r.answerError(ctx, op, method, status, a)
}

// unreadable returns the error of a response that is no JSON.
func unreadable(op string, status int, text string, err error) *slurm.Error {
	if status >= 400 {
		return slurm.FromStderr(op, strings.TrimSpace(text))
	}
	return &slurm.Error{Op: op, Kind: slurm.Broken, Msg: lang.Text{EN: "slurmrestd's answer cannot be read: %s", ZH: "无法读取 slurmrestd 的返回：%s"}.With(err)}
}

// Limits on a list of jobs. Thirty thousand jobs take about 200 MB, of which only one
// job at a time is in memory.
const (
	listLimit = time.Minute
	maxList   = 2 << 30
)

// list requests jobs and passes each to the function each as it arrives.
func (r *REST) list(ctx context.Context, op, area, path string, each func(map[string]any)) error {
	version, err := r.api(ctx)
	if err != nil {
		return withOp(op, err)
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
	return r.answerError(ctx, op, http.MethodGet, res.StatusCode, a)
}

// decodeList decodes an answer and passes its jobs to each one by one.
func decodeList(body io.Reader, each func(map[string]any)) (a answer, err error) {
	dec := json.NewDecoder(body)
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return a, errors.Join(lang.Text{EN: "it is not a JSON object", ZH: "不是 JSON 对象"}.Err(), err)
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
			return a, lang.Text{EN: "its jobs are not a list", ZH: "其中的 jobs 不是列表"}.Err()
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

// answerError returns the error that an answer reports, or nil.
func (r *REST) answerError(ctx context.Context, op, method string, status int, a answer) error {
	// The HTTP status alone is not enough: 22.05 answers 500 for a job that does not
	// exist, and lists an error beside a job that it accepted and holds.
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
		return &slurm.Error{Op: op, Kind: slurm.Broken, Msg: lang.Text{EN: "slurmrestd answered with status %d and no message", ZH: "slurmrestd 返回状态 %d，没有任何说明"}.With(status)}
	}
	return nil
}

// badToken returns an error where the texts said mean that slurmrestd does not accept
// the token, else nil. No release says so plainly: 22.05 reports an unspecified error,
// 23.11 a database that it cannot open for the user, later releases an authentication
// error.
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

// tokenFault returns what is visibly wrong with the token without knowing the signing
// key, or "".
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
