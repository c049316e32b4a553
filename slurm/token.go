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

// UserComment returns what the user wrote in a comment, without our token.
func UserComment(comment string) string {
	words := strings.Fields(comment)
	if len(words) > 0 && strings.HasPrefix(words[len(words)-1], tokenMark) {
		return strings.TrimSpace(comment[:strings.LastIndex(comment, tokenMark)])
	}
	return comment
}
