package reconciler

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/crashguard"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/world"
)

// A crashingSource has commits that kill the process that reads them, as a commit does that needs
// more memory than there is.
type crashingSource struct {
	t     *testing.T
	heads []string
}

func (s *crashingSource) Run(ctx context.Context, head func(gitsource.Commit)) error {
	for _, hash := range s.heads {
		head(gitsource.Commit{Hash: hash})
	}
	<-ctx.Done()
	return nil
}

func (s *crashingSource) Files(_ context.Context, commit string) (fs.FS, error) {
	if strings.HasPrefix(commit, "crashing") && os.Getenv("GITFLEET_TEST_MEMORY") != "enough" {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return world.Files(s.t, "clusters east\n"), nil
}

func (s *crashingSource) Commit(_ context.Context, hash string) (gitsource.Commit, error) {
	return gitsource.Commit{Hash: hash}, nil
}

func (s *crashingSource) Status() gitsource.Status { return gitsource.Status{} }

// TestRunInAChild is the daemon that other tests start in a process of its own. It ends when
// the newest commit is in force or refused, and prints which.
func TestRunInAChild(t *testing.T) {
	dir := os.Getenv("GITFLEET_TEST_STATE")
	if dir == "" {
		t.Skip("only in a child of another test")
	}
	heads := strings.Fields(os.Getenv("GITFLEET_TEST_HEADS"))
	store, err := ledger.Open(filepath.Join(dir, "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var loop *Reconciler
	synced := os.Getenv("GITFLEET_TEST_SYNC") == ""
	reports := make(chan *status.Report, 1000)
	loop = New(Config{
		Source: &crashingSource{t, heads}, Loader: hub.NewLoader(hub.Options{}), Past: hub.NewLoader(hub.Options{}), Store: store,
		LoadingFile: filepath.Join(dir, "loading.json"), Log: slog.New(slog.DiscardHandler),
		Member: func(c *hub.Cluster, report func(protocol.Observation)) Member {
			report(protocol.ClusterSeen{Cluster: c.Name, At: time.Now(), Healthy: true})
			return idle{}
		},
		Publish: func(r *status.Report) { reports <- r },
	})
	ended := make(chan error)
	go func() { ended <- loop.Run(ctx) }()
	for r := range reports {
		s := r.Source
		if s.Newest.Hash != heads[len(heads)-1] {
			continue
		}
		if s.LoadError != "" && !synced {
			synced = true
			if _, err := loop.Check(ctx, Order{}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if s.LoadError != "" || s.InForce.Hash == s.Newest.Hash {
			fmt.Printf("in force: %s; refused: %s\n", s.InForce.Hash, s.LoadError)
			break
		}
	}
	// the decision is saved once every cluster has answered
	for err := errFresh; errors.Is(err, errFresh); {
		_, err = loop.Check(ctx, Order{Subject: "cluster/east"})
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

type idle struct{}

func (idle) SetMembership(protocol.Membership) {}
func (idle) Set([]*work.Work)                  {}

func (idle) Run(ctx context.Context) { <-ctx.Done() }

func (idle) Leave() <-chan struct{} { return nil }

func (idle) Check() {}

func (idle) SetRecord(protocol.MemberRecord)           {}
func (idle) SetDriftDecisions(protocol.DriftDecisions) {}

// A commit that has crashed the process twice is not loaded a third time, and the last good one
// stays in force. It is loaded again when a user asks for it. A single crash does not count.
func TestACommitThatCrashesTheProcessTwiceIsRefused(t *testing.T) {
	dir := t.TempDir()
	run := func(heads string, env ...string) (said string, killed bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestRunInAChild$", "-test.v")
		cmd.Env = append(os.Environ(), append(env, "GITFLEET_TEST_STATE="+dir, "GITFLEET_TEST_HEADS="+heads)...)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL && ctx.Err() == nil {
			return "", true
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "in force: ") {
				return line, false
			}
		}
		t.Fatalf("it said nothing:\n%s", out)
		return "", false
	}
	steps := []struct {
		name, heads string
		env         []string
		killed      bool
		want        string
	}{
		{"a good commit", "good", nil, false, "in force: good; refused: \n"},
		{"a first crash", "good crashing", nil, true, ""},
		{"one crash does not count", "crashing", []string{"GITFLEET_TEST_MEMORY=enough"}, false, "in force: crashing; refused: \n"},
		{"it is in force at the restart", "good", nil, true, ""}, // the commit in force is read first
		{"a second crash", "good", nil, true, ""},
		{"not loaded a third time", "good", nil, false, "in force: good; refused: \n"},
		{"it is the newest again", "crashing", nil, false, "in force: good; refused: loading this commit has ended the daemon 2 times"},
		{"still refused without a sync", "crashing", []string{"GITFLEET_TEST_MEMORY=enough"}, false, "in force: good; refused: loading this commit has ended the daemon 2 times"},
		{"a sync, and a crash", "crashing", []string{"GITFLEET_TEST_SYNC=1"}, true, ""},
		{"refused again", "crashing", nil, false, "in force: good; refused: loading this commit has ended the daemon 2 times"},
		{"another such commit", "crashing crashing-too", nil, true, ""},
		{"a sync, with enough memory", "crashing", []string{"GITFLEET_TEST_SYNC=1", "GITFLEET_TEST_MEMORY=enough"}, false, "in force: crashing; refused: \n"},
	}
	for _, step := range steps {
		said, killed := run(step.heads, step.env...)
		if killed != step.killed || !strings.HasPrefix(said, step.want) {
			t.Fatalf("%s: killed %t, said %q; want %t, %q", step.name, killed, said, step.killed, step.want)
		}
	}
}

// A stuckSource does not find past commits until the test ends, and sends the hashes of commits
// whose files are read.
type stuckSource struct {
	crashingSource
	read chan string
}

func (*stuckSource) Commit(ctx context.Context, _ string) (gitsource.Commit, error) {
	<-ctx.Done()
	return gitsource.Commit{}, ctx.Err()
}

func (s *stuckSource) Files(_ context.Context, commit string) (fs.FS, error) {
	s.read <- commit
	return nil, errors.New("no such commit")
}

// A commit that a user wants to be loaded again does not wait for past commits.
func TestAReloadDoesNotWaitForPastCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newHistoryScene(t)
		c.commit("c9", "clusters east")
		ctx, cancel := context.WithCancel(t.Context())
		source := &stuckSource{read: make(chan string, 1)}
		c.cfg.Source, c.commits.loader.guard = source, crashguard.New("", c.cfg.Log)
		c.commits.source.Newest.Hash, c.commits.newestCrashed = "newest", true
		c.commits.updatePast(ctx, assigned("past"), c.now)
		synctest.Wait()
		c.runOrders(ctx, []queuedOrder{{do: (*orderRun).check, done: make(chan answer, 1)}}, c.now)
		synctest.Wait()
		select {
		case hash := <-source.read:
			if hash != "newest" || c.commits.newestCrashed {
				t.Errorf("loaded %s, still refused: %t", hash, c.commits.newestCrashed)
			}
		default:
			t.Error("the commit is not loaded while a past one is")
		}
		cancel()
		c.running.Wait()
	})
}
