package slacktest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// conversationsOf lists a person's channels, two on a page.
func (s *Server) conversationsOf(a m, _ *http.Request) m {
	var all []string
	for id, people := range s.members {
		if slices.Contains(people, str(a["user"])) {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	first, _ := strconv.Atoi(str(a["cursor"]))
	page, next := all[min(first, len(all)):min(first+2, len(all))], ""
	if first+2 < len(all) {
		next = strconv.Itoa(first + 2)
	}
	list := []any{}
	for _, id := range page {
		list = append(list, m{"id": id, "name": strings.ToLower(s.names[id])})
	}
	return m{"channels": list, "response_metadata": m{"next_cursor": next}}
}

func userInfo(_ *Server, a m, _ *http.Request) m {
	return m{"user": m{"id": a["user"], "team_id": "T1", "name": "somebody", "tz": "Asia/Shanghai", "locale": "en-US"}}
}
