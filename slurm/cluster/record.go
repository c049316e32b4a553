package cluster

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster/recording"
)

// recordedQueries are the queries to a Slurm by its commands; SINCE stands for a day
// ago.
var recordedQueries = []struct {
	name string
	argv []string
}{
	{"version.txt", []string{"sinfo", "--version"}},
	{"queue.txt", []string{"squeue", "--noheader", "--array", "--states=all", "--format=" + slurm.QueueFormat(recording.Separator)}},
	{"accounts.txt", []string{"sacct", "--noheader", "--parsable2", "--allocations", "--duplicates", "--allusers", "--delimiter=" + recording.Separator, "--format=" + slurm.AccountFormat(), "SINCE"}},
	{"nodes.txt", []string{"sinfo", "--noheader", "--Node", "--all", "--format=" + slurm.NodeFormat(recording.Separator)}},
	{"partitions.txt", []string{"sinfo", "--noheader", "--format=" + slurm.PartitionFormat(recording.Separator)}},
	{"limits.txt", []string{"scontrol", "--oneliner", "show", "partition"}},
	{"jobs.txt", []string{"scontrol", "--oneliner", "show", "job"}},
	{"config.txt", []string{"scontrol", "show", "config"}},
	{"squeue.json", []string{"squeue", "--json", "--states=all"}},
	{"sacct.json", []string{"sacct", "--json", "--allusers", "SINCE"}},
	{"sinfo.json", []string{"sinfo", "--json"}},
	{"nodes.json", []string{"scontrol", "show", "nodes", "--json"}},
	{"partitions.json", []string{"scontrol", "show", "partitions", "--json"}},
}

// Record runs every query that this program ever makes and returns the answers. All
// names of people, accounts, machines, folders and jobs, and all other free text, are
// replaced.
func (c *CLI) Record(ctx context.Context) []recording.Answer {
	since := "--starttime=" + time.Now().Add(-24*time.Hour).UTC().Format("2006-01-02T15:04:05")
	var all []recording.Answer
	for _, q := range recordedQueries {
		argv := make([]string, len(q.argv))
		for i, word := range q.argv {
			argv[i] = strings.ReplaceAll(word, "SINCE", since)
		}
		env := queryEnviron(c.Environ())
		if strings.HasSuffix(q.name, ".json") {
			// sacct 22.05 formats the time of --starttime for itself by
			// SLURM_TIME_FORMAT, and then cannot read it.
			env = slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, "SLURM_TIME_FORMAT=") })
		}
		r, err := c.run(ctx, command{argv: argv, env: env})
		one := recording.Answer{Name: q.name, Asked: argv, Code: r.code, Text: r.stdout, Error: r.stderr}
		if err != nil {
			one.Code, one.Error = -1, err.Error()
		}
		all = append(all, one)
	}
	recording.Disguise(all)
	return all
}

// Record sends slurmrestd every query that this program ever makes; see CLI.Record.
func (r *REST) Record(ctx context.Context) []recording.Answer {
	version, err := r.api(ctx)
	if err != nil {
		return []recording.Answer{{Name: "rest.json", Code: -1, Error: err.Error()}}
	}
	day := sinceQuery(version, time.Now().Add(-24*time.Hour))
	var all []recording.Answer
	for name, form := range map[string]string{
		"rest-jobs.json": "slurm/v0.0.%d/jobs", "rest-nodes.json": "slurm/v0.0.%d/nodes",
		"rest-partitions.json": "slurm/v0.0.%d/partitions", "rest-accounts.json": "slurmdb/v0.0.%d/" + day,
	} {
		path := "/" + fmt.Sprintf(form, version)
		text, status, err := r.exchange(ctx, "record", http.MethodGet, path, nil)
		one := recording.Answer{Name: name, Asked: []string{http.MethodGet, path}, Code: status, Text: string(text)}
		if err != nil {
			one.Error = err.Error()
		}
		all = append(all, one)
	}
	recording.Disguise(all)
	return all
}
