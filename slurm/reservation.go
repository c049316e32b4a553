package slurm

import (
	"slices"
	"strings"
	"time"
)

// A Reservation holds nodes back for somebody's jobs. A list that is empty restricts
// nothing; names behind a "-" are those that may not.
type Reservation struct {
	Name     string     `json:"name"`
	Nodes    string     `json:"nodes"`
	Start    *time.Time `json:"start"`
	End      *time.Time `json:"end"`
	Users    []string   `json:"users,omitempty"`
	Accounts []string   `json:"accounts,omitempty"`
	Groups   []string   `json:"groups,omitempty"`
}

// ParseReservations reads what scontrol --oneliner show reservation printed.
func ParseReservations(out string) []Reservation {
	var all []Reservation
	for line := range strings.Lines(out) {
		v := pairs(line)
		if v["ReservationName"] == "" {
			continue // "No reservations in the system"
		}
		all = append(all, Reservation{
			Name: v["ReservationName"], Nodes: v["Nodes"], Start: ParseTime(v["StartTime"]), End: ParseTime(v["EndTime"]),
			Users: listed(v["Users"]), Accounts: listed(v["Accounts"]), Groups: listed(v["Groups"]),
		})
	}
	return all
}

// ReservationFromJSON reads one of slurmrestd's reservations.
func ReservationFromJSON(m map[string]any) Reservation {
	o := jsonObject(m)
	return Reservation{
		Name: o.text("name"), Nodes: o.text("node_list"), Start: o.time("start_time"), End: o.time("end_time"),
		Users: listed(o.text("users")), Accounts: listed(o.text("accounts")), Groups: listed(o.text("groups")),
	}
}

func listed(csv string) []string {
	return strings.FieldsFunc(csv, func(r rune) bool { return r == ',' })
}

// Open reports whether a user with those accounts may use it, by scontrol(1): where
// users and accounts are named, a job must match both. inGroup says whether the user
// is in a group.
func (r Reservation) Open(user string, accounts []string, inGroup func(group string) bool) bool {
	return allows(r.Users, func(name string) bool { return name == user }) &&
		allows(r.Accounts, func(name string) bool { return slices.Contains(accounts, name) }) &&
		allows(r.Groups, inGroup)
}

// allows reports whether a list lets somebody in: by naming them, or by naming others
// behind a "-" only.
func allows(list []string, is func(name string) bool) bool {
	if len(list) == 0 {
		return true
	}
	if !strings.HasPrefix(list[0], "-") {
		return slices.ContainsFunc(list, is)
	}
	return !slices.ContainsFunc(list, func(name string) bool { return is(strings.TrimPrefix(name, "-")) })
}
