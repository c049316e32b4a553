package slurm

import (
	"slices"
	"strings"
)

// tokenMark precedes the token in a job's comment.
const tokenMark = "mops:"

// TagComment returns the user's comment with token appended.
func TagComment(comment, token string) string {
	return strings.TrimSpace(comment + " " + tokenMark + token)
}

// TagName returns name with token appended, for clusters that keep no comments.
func TagName(name, token string) string { return name + "-" + token }

// HasToken reports whether j carries token in its comment or its name.
func HasToken(j Job, token string) bool {
	return token != "" &&
		(slices.Contains(strings.Fields(j.Comment), tokenMark+token) || strings.HasSuffix(j.Name, "-"+token))
}

// TokenFormat is the value of sacct --format that FindToken expects. The last column is
// the one that holds no line break.
const TokenFormat = "SubmitLine,Comment,JobName,JobID"

// FindToken returns the job that carries token, from the output of sacct --parsable2
// --noheader --allocations --delimiter=sep --format=TokenFormat. For an element it
// returns the id of the array.
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

// UserComment returns comment without the token, as the user wrote it.
func UserComment(comment string) string {
	words := strings.Fields(comment)
	if len(words) > 0 && strings.HasPrefix(words[len(words)-1], tokenMark) {
		return strings.TrimSpace(comment[:strings.LastIndex(comment, tokenMark)])
	}
	return comment
}
