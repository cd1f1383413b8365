package e2e

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/githttp"
	"github.com/gitfleet/gitfleet/test/process"
	"github.com/gitfleet/gitfleet/test/sshd"
)

// commitOne commits a ConfigMap for every member.
func (d *daemon) commitOne(value string) string {
	d.t.Helper()
	return d.repo.Commit(d.t, "main", d.one(value))
}

func (d *daemon) one(value string) map[string]string {
	return map[string]string{
		"app.yaml":       yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", value),
		"placement.yaml": yamlPlacement("all", d.name, pickAll+"  strategy: {rollingUpdate: {maxUnavailable: 100%}}\n"),
	}
}

// waitForAll waits until each member has a value.
func (d *daemon) waitForAll(value string) {
	d.t.Helper()
	d.eventually("one is "+value+" everywhere", func() bool {
		return !slices.ContainsFunc(d.members, func(m string) bool { return d.configMap(m, "one")["value"] != value })
	})
}

// tamper deletes an object on a member, and waits until it is restored with a value.
func (d *daemon) tamper(member, value string) {
	d.t.Helper()
	if err := d.clients[member].CoreV1().ConfigMaps(d.name).Delete(context.Background(), "one", metav1.DeleteOptions{}); err != nil {
		d.t.Fatal(err)
	}
	d.eventually(member+" repaired to "+value, func() bool { return d.configMap(member, "one")["value"] == value })
}

// awaitGitError waits until the daemon reports that Git cannot be read, and why.
func (d *daemon) awaitGitError(why string) *status.Report {
	d.t.Helper()
	return d.until("failing with "+why, func(r *status.Report) bool {
		return r.Source.Git.Failures > 0 && strings.Contains(r.Source.Git.Error, why)
	})
}

// serveAgain serves the repository from another server.
func (d *daemon) serveAgain(c githttp.Config) *githttp.Server {
	d.t.Helper()
	c.Root = filepath.Dir(d.repo.Dir)
	s := githttp.Serve(d.t, c)
	d.args = append(d.args, "--url", s.URL("hub.git"))
	return s
}

func TestFetchOverSSH(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	s := sshd.Serve(t)
	d.args = append(d.args, "--set", "source.allowHTTP=false", "--url", "ssh://"+s.User+"@"+s.Address+d.repo.Dir,
		"--set", "source.sshKeyFile="+s.Identity, "--set", "source.sshKnownHosts="+s.KnownHosts)
	d.startAt(d.commitOne("a"))
	d.applied(d.commitOne("b"))
	d.waitForAll("b")
	if n := len(d.git.Requests()); n > 0 {
		t.Errorf("%d requests went over HTTP", n)
	}
}

// A certificate authority and a token are files that can be corrected while the daemon runs.
// Until then the error is reported, without the token.
func TestFetchOverHTTPS(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	dir := t.TempDir()
	other := githttp.Serve(t, githttp.Config{TLS: true})
	ca, token := write(t, filepath.Join(dir, "ca.pem"), string(other.CA())), write(t, filepath.Join(dir, "token"), "wr0ng-t0ken\n")
	server := d.serveAgain(githttp.Config{TLS: true, Token: "r1ght-t0ken"})
	d.args = append(d.args, "--set", "source.allowHTTP=false", "--set", "source.caBundle="+ca, "--set", "source.tokenFile="+token)
	commit := d.commitOne("a")
	d.start()
	d.awaitGitError("certificate")
	write(t, ca, string(server.CA()))
	d.awaitGitError("401")
	write(t, token, "r1ght-t0ken\n")
	d.applied(commit)
	d.waitForAll("a")
	for _, place := range []string{read(t, d.log.Name()), fmt.Sprintf("%+v", d.report())} {
		if strings.Contains(place, "t0ken") {
			t.Errorf("a token is printed:\n%s", place)
		}
	}
}

// A forced push is followed: objects that the new commit does not have are deleted.
func TestForcedPush(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	base := d.commitOne("a")
	d.startAt(base)
	d.applied(d.repo.Commit(t, "main", map[string]string{"two.yaml": yamlConfigMap(d.name, "two", "a")}))
	d.repo.ForcePush(t, "side", base)
	side := d.repo.Commit(t, "side", d.one("b"))
	d.repo.ForcePush(t, "main", side)
	d.applied(side)
	d.waitForAll("b")
	d.eventually("two is gone", func() bool {
		return !slices.ContainsFunc(d.members, func(m string) bool { return d.configMap(m, "two") != nil })
	})
}

// A deleted branch deletes nothing. The last commit stays in force, and the branch is followed
// again once it is back.
func TestDeletedBranch(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	commit := d.commitOne("a")
	d.startAt(commit)
	d.repo.ForcePush(t, "side", commit)
	since := d.waitForAuditLog()
	d.repo.DeleteBranch(t, "main")
	if r := d.awaitGitError("not on the remote"); r.Source.InForce.Hash != commit {
		t.Errorf("in force is %s", r.Source.InForce.Hash)
	}
	d.tamper("member-2", "a")
	d.waitForAuditLog()
	for _, m := range d.members {
		want := map[bool][]string{true: {"patch configmaps " + d.name + "/one 201"}}[m == "member-2"]
		objects, _ := d.asked(m, since)
		if objects = slices.DeleteFunc(objects, reads); !slices.Equal(objects, want) {
			t.Errorf("%s: the branch is gone: %v, want %v", m, objects, want)
		}
	}
	d.repo.ForcePush(t, "main", commit)
	d.applied(d.commitOne("b"))
	d.waitForAll("b")
}

// While the Git server is down the last commit stays in force, also after a restart of the
// daemon; new commits are applied once it is up.
func TestGitServerOutage(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	server := d.serveAgain(githttp.Config{Addr: address})
	commit := d.commitOne("a")
	d.startAt(commit)
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	d.awaitGitError("connection refused")
	d.tamper("member-1", "a")

	d.stop()
	d.start()
	if r := d.awaitGitError("connection refused"); r.Source.InForce.Hash != commit {
		t.Errorf("after a restart %q is in force", r.Source.InForce.Hash)
	}
	d.tamper("member-2", "a")

	later := d.commitOne("b")
	d.serveAgain(githttp.Config{Addr: address})
	d.applied(later)
	d.waitForAll("b")
}

// Retry-After of a Git server is honoured, even if the daemon is asked to poll.
func TestRateLimitOfTheGitServerIsRespected(t *testing.T) {
	t.Parallel()
	const pause = 3 * time.Second
	d := newDaemon(t)
	var mu sync.Mutex
	var limit bool
	var limited, next time.Time
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		switch {
		case limit:
			limit, limited = false, time.Now()
			mu.Unlock()
			w.Header().Set("Retry-After", "3")
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		case !limited.IsZero() && next.IsZero():
			next = time.Now()
		}
		mu.Unlock()
		d.git.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	secret := write(t, filepath.Join(t.TempDir(), "secret"), "s3cret")
	d.args = append(d.args, "--url", front.URL+"/hub.git", "--set", "webhook.secretFile="+secret)
	d.startAt(d.commitOne("a"))
	mu.Lock()
	limit = true
	mu.Unlock()
	d.awaitGitError("asks to wait 3s")
	d.push("s3cret")
	d.applied(d.commitOne("b"))
	mu.Lock()
	defer mu.Unlock()
	if waited := next.Sub(limited); waited < pause {
		t.Errorf("asked again after %s", waited)
	}
}

// push sends the webhook of a push to main, as GitHub does, and returns the status of the
// response.
func (d *daemon) push(secret string) int {
	d.t.Helper()
	body := `{"ref": "refs/heads/main"}`
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	req, err := http.NewRequest(http.MethodPost, "http://"+d.address+"/webhook", strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("X-GitHub-Event", "push")
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// With ten minutes between polls a commit is applied right after the webhook of its push; a
// webhook with another secret has no effect.
func TestWebhookTriggersAPoll(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	secret := write(t, filepath.Join(t.TempDir(), "secret"), "s3cret\n")
	d.args = append(d.args, "--interval", "10m", "--set", "webhook.secretFile="+secret)
	d.startAt(d.commitOne("a"))
	d.waitForAll("a")
	for i := range 3 {
		value := fmt.Sprint("b", i)
		start := time.Now()
		commit := d.commitOne(value)
		if got := d.push("s3cret"); got != http.StatusAccepted {
			t.Fatalf("the webhook is answered with %d", got)
		}
		d.waitForAll(value)
		t.Logf("commit to all members: %s", time.Since(start).Round(time.Millisecond))
		d.applied(commit)
	}
	polls := len(d.git.Requests())
	if got := d.push("guess"); got != http.StatusUnauthorized {
		t.Errorf("a wrong signature is answered with %d", got)
	}
	resp, err := http.Get("http://" + d.address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for result, n := range map[string]int{"woke": 3, "unauthorized": 1} {
		if want := fmt.Sprintf("gitfleet_webhook_requests_total{fleet=%q,result=%q} %d\n", d.name, result, n); !strings.Contains(string(text), want) {
			t.Errorf("the metrics do not have %s", want)
		}
	}
	if n := len(d.git.Requests()); n != polls {
		t.Errorf("a wrong signature made the daemon ask Git %d times", n-polls)
	}
}

// Members that wait for their rollout are kept at, and repaired to, the commit that they hold,
// even after the remote has deleted it, and after a restart.
func TestHistoryRewrittenAcrossARollout(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	oneByOne := yamlPlacement("all", d.name, pickAll+"  strategy: {rollingUpdate: {maxUnavailable: 1}}\n")
	d.repo.Commit(t, "main", d.one("a"))
	first := d.repo.Commit(t, "main", map[string]string{"placement.yaml": oneByOne})
	d.startAt(first)

	// No controller runs, so the Deployment is never available, and the rollout does not
	// continue after the first member.
	files := d.one("b")
	files["web.yaml"], files["placement.yaml"] = yamlDeployment(d.name, "web", 1), oneByOne
	second := d.repo.Commit(t, "main", files)
	waiting := d.waiting(second)

	for _, m := range d.members {
		files["clusters/"+m+".yaml"] = memberCluster(m)
	}
	files["app.yaml"] = d.one("c")["app.yaml"]
	third := d.repo.Replace(t, "fresh", files)
	d.repo.ForcePush(t, "main", third)
	d.repo.DeleteBranch(t, "fresh")
	d.repo.Git(t, "reflog", "expire", "--expire=now", "--all")
	d.repo.Git(t, "gc", "--quiet", "--prune=now")
	if _, err := d.repo.Repo.Git("cat-file", "-e", first); err == nil {
		t.Fatal("the remote still has the first commit")
	}
	d.until("rewritten", func(r *status.Report) bool { return r.Source.InForce.Hash == third })
	d.tamper(waiting[0], "a")

	d.stop()
	d.start()
	d.until("back", func(r *status.Report) bool { return r.Source.InForce.Hash == third })
	d.tamper(waiting[1], "a")

	// Without the clone the content that they hold is unknown; it stays nevertheless.
	d.stop()
	if err := os.RemoveAll(filepath.Join(d.state(), "git")); err != nil {
		t.Fatal(err)
	}
	d.start()
	d.until("back without a clone", func(r *status.Report) bool { return r.Source.InForce.Hash == third })
	d.waiting(third)
	for _, m := range waiting {
		if got := d.configMap(m, "one")["value"]; got != "a" {
			t.Errorf("%s has %q, although the content of its commit is unknown", m, got)
		}
	}

	d.repo.Remove(t, "main", "web.yaml")
	d.waitForAll("c")
	d.applied(d.repo.Head(t, "main"))
}

// waiting returns the two members that wait while one has a commit.
func (d *daemon) waiting(commit string) []string {
	d.t.Helper()
	var held []string
	d.until("held but for one", func(r *status.Report) bool {
		held = nil
		moved := 0
		for _, c := range r.Details[0].Clusters {
			switch {
			case c.Waits != "":
				held = append(held, c.Cluster)
			case c.Commit == commit && c.Applied:
				moved++
			}
		}
		return len(held) == 2 && moved == 1
	})
	return held
}

// If signatures are required, an unsigned commit does not come into force, nor do signed
// commits on top of it.
func TestUnsignedCommitIsRefused(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	dir := t.TempDir()
	key := sshd.NewKey(t, filepath.Join(dir, "ada"), "")
	signers := write(t, filepath.Join(dir, "signers"), "ada@example.com "+read(t, key+".pub"))
	d.args = append(d.args, "--set", "source.signatures.allowedSigners="+signers, "--set", "source.signatures.paths==ada@example.com;namespaces=*;kinds=*;placements=*")
	d.commitOne("a")
	signed := d.sign(key)
	d.args = append(d.args, "--set", "source.signatures.since="+d.repo.Git(t, "rev-parse", "main~1"))
	d.startAt(signed)
	unsigned := d.commitOne("b")
	d.sign(key)
	if r := d.awaitGitError("commit " + unsigned + ": not signed"); r.Source.InForce.Hash != signed {
		t.Errorf("in force is %s", r.Source.InForce.Hash)
	}
	if got := d.configMap("member-1", "one")["value"]; got != "a" {
		t.Errorf("the unsigned content is there: %q", got)
	}
	d.repo.ForcePush(t, "main", signed)
	d.commitOne("c")
	last := d.replaceBySigned(key)
	d.applied(last)
	d.waitForAll("c")
}

// sign creates a signed commit without changes on top of main.
func (d *daemon) sign(key string) string { return d.commitTree(key, "main") }

// replaceBySigned replaces the newest commit of main by the same one with a signature.
func (d *daemon) replaceBySigned(key string) string { return d.commitTree(key, "main~1") }

func (d *daemon) commitTree(key, parent string) string {
	d.t.Helper()
	hash := d.repo.Git(d.t, "-c", "gpg.format=ssh", "-c", "user.signingkey="+key,
		"commit-tree", "-S", "-p", parent, "-m", "signed", "main^{tree}")
	d.repo.ForcePush(d.t, "main", hash)
	return hash
}
