package gitsource

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/test/githttp"
	"github.com/gitfleet/gitfleet/test/sshd"
)

// A publishing is a daemon's store of a repository to which it may push branches.
type publishing struct {
	*Publisher
	t      *testing.T
	daemon *runner
	server *githttp.Server
	repo   githttp.Scratch
	main   string
}

const (
	driftBranch = "gitfleet/drift/0123"
	driftMarker = "Gitfleet-Drift: 0123"
)

func newPublishing(t *testing.T, signingKey string) *publishing {
	t.Helper()
	s := githttp.Serve(t, githttp.Config{Token: "writer"})
	p := &publishing{t: t, server: s, repo: s.Repo(t, "hub.git")}
	p.main = p.repo.Commit(t, "main", map[string]string{"apps/web.yaml": "replicas: 1\n", "other": "1"})
	cfg := config(t, s.URL("hub.git"))
	cfg.Auth.Token = remote.SecretSource{File: writeTemp(t, "token", "writer")}
	p.daemon = start(t, cfg)
	if err := p.daemon.poll(); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.Publisher, err = p.daemon.Publisher(Config{URL: cfg.URL, Auth: cfg.Auth, AllowHTTP: true}, signingKey); err != nil {
		t.Fatal(err)
	}
	return p
}

// advance commits to main, and makes the daemon fetch it.
func (p *publishing) advance(files map[string]string) {
	p.t.Helper()
	p.main = p.repo.Commit(p.t, "main", files)
	if err := p.daemon.again(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *publishing) publish(files map[string][]byte) BranchState {
	p.t.Helper()
	state, err := p.Publish(p.t.Context(), BranchCommit{
		Branch: driftBranch, Base: p.main, Files: files, Message: "web: take over\n\n" + driftMarker + "\n", Marker: driftMarker, Time: time.Unix(1e9, 0),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	if state.Head != p.repo.Head(p.t, driftBranch) {
		p.t.Errorf("the branch is said to be at %s", state.Head)
	}
	return state
}

// A branch gets one commit that changes its files and no others. When it is published again,
// also by another daemon or after a restart, it is not changed until the base has another
// version of one of its files.
func TestABranchIsPublishedOnce(t *testing.T) {
	p := newPublishing(t, "")
	files := map[string][]byte{"apps/web.yaml": []byte("replicas: 2\n"), "apps/new.yaml": []byte("a: b\n"), "other": nil}
	first := p.publish(files)
	if got, want := p.repo.Git(t, "diff", "--name-status", "main", driftBranch), "A\tapps/new.yaml\nM\tapps/web.yaml\nD\tother"; strings.TrimSpace(got) != want {
		t.Errorf("the branch changes\n%s\nwant\n%s", got, want)
	}
	p.repo.Git(t, "fsck", "--strict")
	if got := p.repo.Git(t, "log", "-1", "--format=%an <%ae> %cn <%ce> %P", driftBranch); !strings.Contains(got, "gitfleet <gitfleet@noreply.invalid> gitfleet <gitfleet@noreply.invalid> "+p.main) {
		t.Errorf("the commit is by %s", got)
	}
	if again := p.publish(files); again != first {
		t.Errorf("published again: %+v, was %+v", again, first)
	}
	p.advance(map[string]string{"unrelated": "1"})
	if again := p.publish(files); again != first {
		t.Errorf("another file changed: %+v, was %+v", again, first)
	}
	const message = "web: take over more\n\n" + driftMarker + "\n"
	other, err := p.Publish(t.Context(), BranchCommit{Branch: driftBranch, Base: p.main, Files: files, Message: message, Marker: driftMarker, Time: time.Unix(1e9, 0)})
	if got := p.repo.Git(t, "log", "-1", "--format=%B", driftBranch); err != nil || other.Head == first.Head || strings.TrimSpace(got) != strings.TrimSpace(message) {
		t.Errorf("with another message: %v, %+v\n%s", err, other, got)
	}
	first = p.publish(files)
	p.advance(map[string]string{"apps/web.yaml": "replicas: 1\n# more\n"})
	files["apps/web.yaml"] = []byte("replicas: 2\n# more\n")
	if again := p.publish(files); again.Head == first.Head || strings.TrimSpace(p.repo.Git(t, "rev-parse", driftBranch+"^")) != p.main {
		t.Errorf("not built again on the base: %+v", again)
	}
	if got, err := p.List(t.Context(), "gitfleet/drift/"); err != nil || len(got) != 1 || got[0] != driftBranch {
		t.Errorf("the branches are %q: %v", got, err)
	}
	if err := p.Remove(t.Context(), driftBranch, driftMarker); err != nil {
		t.Fatal(err)
	}
	if err := p.Remove(t.Context(), driftBranch, driftMarker); err != nil {
		t.Errorf("removed twice: %v", err)
	}
	if got := p.repo.Git(t, "branch", "--list", driftBranch); got != "" {
		t.Errorf("the branch is there: %s", got)
	}
	_, err = p.Publish(t.Context(), BranchCommit{Branch: driftBranch, Base: p.main, Files: map[string][]byte{"other": []byte("1")}, Message: driftMarker, Marker: driftMarker})
	wantError(t, err, "the commit would change nothing")
}

// A new branch is pushed with two requests: its push begins with a list of the branches, which says that there is none.
func TestANewBranchIsPushedAtOnce(t *testing.T) {
	p := newPublishing(t, "")
	before := len(p.server.Requests())
	p.publish(map[string][]byte{"other": []byte("2")})
	var got []string
	for _, r := range p.server.Requests()[before:] {
		got = append(got, fmt.Sprintf("%s refs=%t", r.Service, r.Refs))
	}
	if text := strings.Join(got, ", "); text != "git-receive-pack refs=true, git-receive-pack refs=false" {
		t.Errorf("sent %s", text)
	}
}

// A branch to which people have pushed is not changed, whatever happens to the base.
func TestABranchOfPeopleStays(t *testing.T) {
	for name, push := range map[string]func(p *publishing){
		"a commit on top": func(p *publishing) {
			p.repo.Commit(p.t, driftBranch, map[string]string{"apps/web.yaml": "replicas: 3\n"})
		},
		"of their own": func(p *publishing) {
			p.repo.ForcePush(p.t, driftBranch, p.main)
			p.repo.Commit(p.t, driftBranch, map[string]string{"apps/web.yaml": "replicas: 4\n"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPublishing(t, "")
			files := map[string][]byte{"apps/web.yaml": []byte("replicas: 2\n")}
			p.publish(files)
			push(p)
			theirs := p.repo.Head(t, driftBranch)
			if got := p.publish(files); got != (BranchState{Head: theirs, Others: true}) {
				t.Errorf("published: %+v", got)
			}
			p.advance(map[string]string{"apps/web.yaml": "replicas: 1\n# more\n"})
			if got := p.publish(files); got != (BranchState{Head: theirs, Others: true, Outdated: true}) {
				t.Errorf("published after the base has changed: %+v", got)
			}
			if err := p.Remove(t.Context(), driftBranch, driftMarker); err != nil {
				t.Fatal(err)
			}
			if got := p.repo.Head(t, driftBranch); got != theirs {
				t.Errorf("the branch is at %s, want %s", got, theirs)
			}
		})
	}
}

// A commit that gitfleet has read for a plan, or that was in the base before the history was
// rewritten, still counts as that of its author.
func TestACommitThatIsKnownStays(t *testing.T) {
	files := map[string][]byte{"apps/web.yaml": []byte("replicas: 2\n")}
	t.Run("planned", func(t *testing.T) {
		p := newPublishing(t, "")
		p.publish(files)
		theirs := p.repo.Commit(t, driftBranch, map[string]string{"apps/web.yaml": "replicas: 3\n"})
		if err := p.daemon.FetchRef(t.Context(), "refs/heads/"+driftBranch, theirs); err != nil {
			t.Fatal(err)
		}
		if got := p.publish(files); got != (BranchState{Head: theirs, Others: true}) {
			t.Errorf("published: %+v", got)
		}
	})
	t.Run("rewritten", func(t *testing.T) {
		p := newPublishing(t, "")
		before := p.main
		p.advance(map[string]string{"theirs": "1"})
		theirs := p.main
		p.repo.ForcePush(t, driftBranch, theirs)
		p.repo.ForcePush(t, "main", before)
		p.advance(map[string]string{"more": "1"})
		if got := p.publish(files); got.Head != theirs || !got.Others {
			t.Errorf("published: %+v", got)
		}
		if err := p.Remove(t.Context(), driftBranch, driftMarker); err != nil {
			t.Fatal(err)
		}
		if got := p.repo.Head(t, driftBranch); got != theirs {
			t.Errorf("the branch is at %q, want %s", got, theirs)
		}
	})
}

// If a server refuses a push, the error contains the server's message but not the token.
func TestARefusedBranchSaysWhy(t *testing.T) {
	p := newPublishing(t, "")
	hook := filepath.Join(p.repo.Dir, "hooks", "pre-receive")
	if err := os.MkdirAll(filepath.Dir(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho 'branch gitfleet/* is protected'\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := p.Publish(t.Context(), BranchCommit{Branch: driftBranch, Base: p.main, Files: map[string][]byte{"other": []byte("2")}, Message: driftMarker, Marker: driftMarker})
	wantError(t, err, "push branch "+driftBranch, "is protected")
	if strings.Contains(fmt.Sprint(err), "writer") {
		t.Errorf("the error tells the token: %v", err)
	}
}

// With a signing key, the commit is signed so that a repository that requires signatures
// accepts it.
func TestPublishedCommitsAreSigned(t *testing.T) {
	key := sshd.NewKey(t, filepath.Join(t.TempDir(), "key"), "")
	p := newPublishing(t, key)
	p.publish(map[string][]byte{"other": []byte("2")})
	allowed := writeTemp(t, "allowed", "gitfleet@noreply.invalid "+read(t, key+".pub"))
	p.repo.Git(t, "-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+allowed, "verify-commit", driftBranch)
}
