package slurm

import (
	"slices"
	"strings"
	"time"
)

// A Reservation reserves nodes for certain users' jobs. An empty list restricts
// nothing. Names with a "-" in front are excluded.
type Reservation struct {
	Name     string     `json:"name"`
	Nodes    string     `json:"nodes"`
	Start    *time.Time `json:"start"`
	End      *time.Time `json:"end"`
	Users    []string   `json:"users,omitempty"`
	Accounts []string   `json:"accounts,omitempty"`
	Groups   []string   `json:"groups,omitempty"`
}

// ParseReservations reads the output of scontrol --oneliner show reservation.
func ParseReservations(out string) []Reservation {
	var all []Reservation
	for line := range strings.Lines(out) {
		v := keyValues(line)
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

// Open reports whether a user with those accounts may use the reservation. By
// scontrol(1), a job must match both lists where users and accounts are named. inGroup
// reports whether the user is in a group.
func (r Reservation) Open(user string, accounts []string, inGroup func(group string) bool) bool {
	return allows(r.Users, func(name string) bool { return name == user }) &&
		allows(r.Accounts, func(name string) bool { return slices.Contains(accounts, name) }) &&
		allows(r.Groups, inGroup)
}

// allows reports whether a list admits somebody: it names them, or it names only others
// with a "-" in front.
func allows(list []string, is func(name string) bool) bool {
	if len(list) == 0 {
		return true
	}
	if !strings.HasPrefix(list[0], "-") {
		return slices.ContainsFunc(list, is)
	}
	return !slices.ContainsFunc(list, func(name string) bool { return is(strings.TrimPrefix(name, "-")) })
}
