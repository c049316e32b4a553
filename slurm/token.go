package slurm

import (
	"slices"
	"strings"
)

// tokenMark stands before a token in a job's comment.
const tokenMark = "mops:"

// TagComment returns the comment that carries token beside what the user wrote.
func TagComment(comment, token string) string {
	return strings.TrimSpace(comment + " " + tokenMark + token)
}

// TagName returns the job name that carries token, for clusters that do not keep
// comments.
func TagName(name, token string) string { return name + "-" + token }

// HasToken reports whether j carries token, in its comment or its name.
func HasToken(j Job, token string) bool {
	return token != "" &&
		(slices.Contains(strings.Fields(j.Comment), tokenMark+token) || strings.HasSuffix(j.Name, "-"+token))
}

// TokenFormat is the --format to give sacct for FindToken: free text first, and
// last what can hold no line break.
const TokenFormat = "SubmitLine,Comment,JobName,JobID"

// FindToken returns the job that carries token in what sacct --parsable2
// --noheader --allocations --delimiter=sep printed in TokenFormat; an array's
// elements stand for their array.
func FindToken(out, sep, token string) (JobID, bool) {
	fields := strings.Split(out, sep)
	for i := 0; i+3 < len(fields); i += 3 {
		id, next, _ := strings.Cut(fields[i+3], "\n")
		j := Job{Comment: fields[i+1], Name: fields[i+2]}
		if token != "" && IsJobID(id) && (HasToken(j, token) || strings.Contains(fields[i], tokenMark+token) || strings.Contains(fields[i], "-"+token)) {
			return JobID(id).Array(), true
		}
		fields[i+3] = next
	}
	return "", false
}

// UserComment returns what the user wrote in a comment, without our token.
func UserComment(comment string) string {
	words := strings.Fields(comment)
	if len(words) > 0 && strings.HasPrefix(words[len(words)-1], tokenMark) {
		return strings.TrimSpace(comment[:strings.LastIndex(comment, tokenMark)])
	}
	return comment
}
