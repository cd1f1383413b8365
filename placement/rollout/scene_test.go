package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/test/golden"
)

// TestScenes runs the scenes in testdata. Each file of an archive is a command, and its content
// is the output of the command:
//
//	fleet east=v1 west     clusters that have v1 and are available, or are new
//	wanted 3               strategy 25%/25% 60     max-unreachable 1
//	external               report-diff, apply      on-failure continue
//	commit v2 [east]       the content that clusters would get from now on
//	proven v1              the last content that was available everywhere
//	seen failed east       available, progressing, broken (will not become
//	                       available), failed (not applied), untracked, diffed
//	timeout 10m            how long a cluster may take to become available
//	unreachable east       reachable east
//	suspend east           go-on east
//	hold east              release east    new content waits
//	spare east             available, without the suspended objects
//	join south             unschedule east         select east     gone east
//	written east           gitfleet writes there again, such as after drift
//	restart                no member has reported yet
//	wait 30s               resume
//	plan                   prints the result of Next, and executes it
func TestScenes(t *testing.T) {
	golden.Archives(t, "testdata/*.txtar", func(t *testing.T, archive *txtar.Archive) {
		s := &scene{t: t, wanted: asSelected, in: Input{Now: noon, StopOnFailure: true, RepairAfter: repairAfter}}
		golden.Steps(t, archive, func(words []string, _ string) (string, bool) { return s.do(words), true })
	})
}

// A scene is a fleet in virtual time.
type scene struct {
	t      testing.TB
	wanted int
	in     Input
	latest placement.Revision
	proven placement.Revision
}

func (s *scene) do(words []string) string {
	s.t.Helper()
	args := words[1:]
	switch words[0] {
	case "fleet", "join":
		for _, a := range args {
			s.join(a)
		}
	case "wanted":
		s.wanted, _ = strconv.Atoi(args[0])
	case "strategy":
		s.in.Strategy.RollingUpdate = input(0, "", strings.Join(args, " ")).Strategy.RollingUpdate
	case "max-unreachable":
		n := intstr.Parse(args[0])
		s.in.MaxUnreachable = &n
	case "on-failure":
		s.in.StopOnFailure = args[0] != "continue"
	case "external":
		s.in.Strategy.Type = api.External
	case "report-diff":
		s.in.Strategy.ApplyStrategy = &api.ApplyStrategy{Type: api.ReportDiff}
	case "apply":
		s.in.Strategy.ApplyStrategy = nil
	case "commit":
		s.commit(args[0], args[1:])
	case "proven":
		s.proven = revision(args[0])
		s.each(nil, func(b *Target) { b.Proven = s.proven })
	case "seen":
		s.each(args[1:], func(b *Target) { s.seen(b, args[0]) })
	case "spare":
		s.each(args, func(b *Target) {
			b.Seen = Seen{Hash: b.Assigned.Hash, Health: Available, Since: s.in.Now, Partial: true}
		})
	case "timeout":
		s.in.AvailableTimeout = s.duration(args[0])
	case "unreachable", "reachable":
		s.block(args, func(b *Target) { b.Unreachable = words[0] == "unreachable" })
	case "suspend":
		s.block(args, func(b *Target) { b.Suspended = "suspended by alice until 14:00: an incident" })
	case "hold":
		s.each(args, func(b *Target) {
			b.Deferral = Deferral{Why: "new content waits: the fleet is frozen by alice until Monday: release week", Until: s.in.Now.Add(time.Hour)}
		})
	case "release":
		s.each(args, func(b *Target) { b.Deferral = Deferral{} })
	case "go-on":
		s.block(args, func(b *Target) { b.Suspended = "" })
	case "written":
		s.each(args, func(b *Target) { b.Seen.Writing = true })
	case "restart":
		s.each(nil, func(b *Target) { b.Seen.DownSince = time.Time{} })
	case "unschedule":
		s.each(args, func(b *Target) { b.Unscheduled, b.Latest = true, placement.Revision{} })
	case "select":
		s.each(args, func(b *Target) { b.selectAgain(s.latest, s.in.Now) })
	case "gone":
		s.in.Targets = slices.DeleteFunc(s.in.Targets, func(b Target) bool { return slices.Contains(args, b.Cluster) })
	case "wait":
		s.in.Now = s.in.Now.Add(s.duration(args[0]))
	case "resume":
		s.in.Resumed, s.in.Stops = s.in.Now, nil
	case "plan":
		return s.plan()
	default:
		s.t.Fatalf("no such command: %s", words[0])
	}
	return ""
}

var healths = map[string]Health{
	"nothing": Unknown, "available": Available, "progressing": Unavailable, "broken": Unavailable, "failed": Failed,
	"untracked": Untracked, "diffed": DiffReported, "undiffed": DiffFailed,
}

// seen makes the member of a cluster report the health of its content. While the health is the
// same, its time is that of the first such report.
func (s *scene) seen(b *Target, word string) {
	was, now := b.Seen, Seen{Hash: b.Assigned.Hash, Health: healths[word], Since: s.in.Now}
	if was.Hash == now.Hash {
		now.Writing, now.DownSince = was.Writing, was.DownSince
		if was.Health == now.Health {
			now.Since = was.Since
		}
	}
	switch now.Health {
	case Available, Untracked:
		now.Writing, now.DownSince = false, time.Time{}
	case Unavailable, Failed:
		if now.DownSince.IsZero() {
			now.DownSince = s.in.Now
		}
	}
	if word == "broken" {
		now.Failure = "Deployment web: the image cannot be pulled"
	}
	b.Seen = now
}

// block changes whether clusters are unreachable or suspended. What was reported before is not
// trusted afterwards.
func (s *scene) block(names []string, change func(*Target)) {
	s.each(names, func(b *Target) {
		was := b.blocked()
		if change(b); b.blocked() != was {
			b.BlockedSince = s.in.Now
			if !b.Seen.DownSince.IsZero() {
				b.Seen.DownSince = s.in.Now
			}
		}
	})
}

func (s *scene) duration(text string) time.Duration {
	s.t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *scene) join(word string) {
	name, version, held := strings.Cut(word, "=")
	b := Target{Latest: s.latest, Proven: s.proven}
	b.Cluster = name
	if held {
		b.Assigned, b.AssignedAt = revision(version), s.in.Now
		b.Seen = Seen{Hash: version, Health: Available, Since: s.in.Now}
		b.WasAvailable = true
		if s.latest == (placement.Revision{}) {
			b.Latest = b.Assigned
		}
	}
	s.in.Targets = append(s.in.Targets, b)
}

func (s *scene) commit(version string, clusters []string) {
	if len(clusters) == 0 {
		s.latest = revision(version)
	}
	s.each(clusters, func(b *Target) {
		if !b.Unscheduled {
			b.Latest = revision(version)
		}
	})
	for i := range s.in.Stops {
		if stop := &s.in.Stops[i]; len(clusters) == 0 || slices.Contains(clusters, stop.Cluster) {
			stop.Latest = version
		}
	}
}

// each calls do for the clusters with these names, or for all.
func (s *scene) each(names []string, do func(*Target)) {
	for i := range s.in.Targets {
		if b := &s.in.Targets[i]; len(names) == 0 || slices.Contains(names, b.Cluster) {
			do(b)
		}
	}
}

func (s *scene) plan() string {
	s.in.want(s.wanted)
	p := Next(s.in)
	var out strings.Builder
	for _, b := range byCluster(s.in.Targets) {
		fmt.Fprintf(&out, "%-6s %s\n", b.Cluster, story(&b, p))
	}
	for _, f := range p.Failed {
		fmt.Fprintf(&out, "%s failed: %s\n", f.Cluster, cmp.Or(f.Reason, "not carried out"))
	}
	if p.Stopped != "" {
		fmt.Fprintf(&out, "stopped by %s\n", p.Stopped)
	}
	if p.Settled {
		fmt.Fprintln(&out, "settled")
	}
	if !p.Wake.IsZero() {
		fmt.Fprintf(&out, "wake in %v\n", p.Wake.Sub(s.in.Now))
	}
	carryOut(&s.in, p)
	return out.String()
}

// story describes the effect of a plan on one cluster.
func story(b *Target, p Plan) string {
	at := func(r placement.Revision) string { return strings.TrimSpace(r.Hash + " ") }
	text := at(b.Assigned)
	switch {
	case slices.Contains(p.Remove, b.Cluster):
		text += " removed"
	case b.Removing:
		text += " being removed"
	}
	for _, a := range p.Assign {
		if a.Cluster == b.Cluster && a.Changed {
			text += "→" + a.Hash
		}
	}
	for _, w := range p.Waiting {
		if w.Cluster == b.Cluster {
			text += " waits: " + w.Message
		}
	}
	return strings.TrimSpace(text)
}

// carryOut executes a plan as the loop does.
func carryOut(in *Input, p Plan) {
	in.Stops = nil
	for _, stop := range p.Stops {
		in.Stops = append(in.Stops, EarlierStop{stop, stop.Failed.Hash})
	}
	for _, a := range p.Assign {
		i := slices.IndexFunc(in.Targets, func(b Target) bool { return b.Cluster == a.Cluster })
		b := &in.Targets[i]
		if a.Changed {
			b.Assigned, b.AssignedAt = a.Revision, in.Now
			// The last report stays until there is a new one, unless it could be mistaken for
			// one about the new assignment.
			if b.Seen.Hash == a.Hash {
				b.Seen = Seen{}
			}
		}
		b.Risked, b.WasAvailable = a.Risked, a.WasAvailable
	}
	for _, c := range p.Remove {
		i := slices.IndexFunc(in.Targets, func(b Target) bool { return b.Cluster == c })
		in.Targets[i].Removing = true
	}
}
