package proposal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/reconciler/history"
)

func (f *fakeForge) EnsureLabels(ctx context.Context, labels []forge.Label) error {
	return cmp.Or(f.Forge.EnsureLabels(ctx, labels), f.refuseLabels)
}

func (f *fakeForge) RequestReviewers(ctx context.Context, number int64, names []string) (refused []string, err error) {
	if f.refuseReviewers != nil {
		return nil, f.refuseReviewers
	}
	f.Readers = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return strings.HasPrefix(name, "unknown") })
	return f.Forge.RequestReviewers(ctx, number, names)
}

// The labels that gitfleet uses are created with a color and a description, once. If that is refused, pull requests are
// opened nevertheless.
func TestLabelsAreCreated(t *testing.T) {
	for _, refused := range []error{nil, &forge.StatusError{Status: 403, Message: "not allowed"}} {
		p := newProposing(10)
		p.forge.refuseLabels = refused
		p.after(t, 3*time.Minute, heldChange(7, "east"))
		p.after(t, 3*time.Minute, heldChange(7, "east"), heldChange(8, "west"))
		var names []string
		for _, l := range p.forge.Labels {
			names = append(names, l.Name)
			if !strings.HasPrefix(l.Color, "#") || len(l.Color) != 7 || l.Description == "" || len(l.Description) > 100 {
				t.Errorf("created: %+v", l)
			}
		}
		slices.Sort(names)
		want := "gitfleet/drift, gitfleet/hold, gitfleet/manual-edit, gitfleet/severity: image, gitfleet/severity: other, gitfleet/severity: rbac, gitfleet/severity: replicas, placement/web"
		if got := strings.Join(slices.Compact(names), ", "); got != want {
			t.Errorf("created %s, want %s", got, want)
		}
		if n := len(p.forge.Pulls); n != 2 {
			t.Errorf("%d pull requests are open", n)
		}
	}
}

// Reviews are requested of the configured users and of the owners of the changed files, when the pull request is opened.
func TestReviewersAreRequested(t *testing.T) {
	p := newProposing(10)
	p.follower.tracker.cfg.Reviewers, p.follower.tracker.cfg.OwnersFiles = []string{"anna", "unknown"}, []string{"CODEOWNERS"}
	p.follower.tracker.cfg.Files = func(context.Context, string) (fs.FS, error) {
		return fstest.MapFS{"CODEOWNERS": {Data: []byte("* @ben\nweb.yaml @org/apps @anna\n")}}, nil
	}
	p.forge.refuseReviewers = &forge.StatusError{Status: 503}
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.forge.refuseReviewers = nil
	requested := func(when, want string) {
		t.Helper()
		p.after(t, 5*time.Minute, heldChange(7, "east"))
		if got := strings.Join(p.forge.Reviewers[1], ", "); got != want {
			t.Errorf("%s, these were requested: %s", when, got)
		}
	}
	requested("once the forge answers", "anna, org/apps")
	p.restart(10)
	p.follower.tracker.cfg.Reviewers, p.follower.tracker.cfg.OwnersFiles = []string{"anna", "unknown", "carl"}, []string{"CODEOWNERS"}
	p.follower.tracker.cfg.Files = func(context.Context, string) (fs.FS, error) {
		return fstest.MapFS{"CODEOWNERS": {Data: []byte("* @dora\n")}}, nil
	}
	requested("with others after a restart", "anna, org/apps, carl, dora")
	body := p.forge.Pulls[0].Body // as an earlier version has opened it
	p.forge.Pulls[0].Body = strings.ReplaceAll(body, askedLine.FindString(body)+"\n", "")
	p.restart(10)
	p.follower.tracker.cfg.Reviewers = []string{"emil"}
	requested("of a pull request of an earlier version", "anna, org/apps, carl, dora")
}

// A pull request or an issue about which nobody decides is closed, and the object stays as it is. It is offered again if
// somebody asks for that, and one that is opened again is not closed once more.
func TestAnOfferExpires(t *testing.T) {
	for name, c := range map[string]func(...string) *change{
		"a pull request": func(clusters ...string) *change { return heldChange(7, clusters...) },
		"an issue":       func(clusters ...string) *change { return manualChange(7, clusters...) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProposing(10)
			p.follower.tracker.cfg.ExpireAfter = time.Hour
			p.after(t, 50*time.Minute, c("east"))
			p.says(t, "east", "held: left as it is; offered as ")
			p.after(t, 20*time.Minute, c("east"))
			p.says(t, "east", "held: left as it is; https://git.example.com/")
			p.says(t, "east", " has expired: nobody decided about it")
			if len(p.forge.comments) != 1 || !strings.HasPrefix(p.forge.comments[0], "Nobody has decided about this within 1h0m0s") || len(p.forge.branches) > 0 {
				t.Errorf("comments %q, branches %v", p.forge.comments, p.forge.branches)
			}
			said := p.forge.comments[0] // a pull request without its branch cannot be opened again
			if strings.Contains(said, "open this again") != (len(p.forge.Issues) > 0) || !strings.Contains(said, "`gitfleet proposals open "+c().hash+"`") {
				t.Errorf("the comment says %q", said)
			}
			p.restart(10)
			p.follower.tracker.cfg.ExpireAfter = time.Hour
			p.after(t, 5*time.Minute, c("east"))
			p.says(t, "east", " has expired: nobody decided about it")
			if state := p.held.Load().items[0].state; state != Expired {
				t.Errorf("its state is %s", state)
			}
			if answer := p.handle(t.Context(), request{do: p.openNow, name: c().hash, by: "anna"}, p.forge.Now); answer.err != nil {
				t.Fatal(answer.err)
			}
			p.says(t, "east", "held: left as it is; offered as ")
			if n := len(p.forge.Pulls) + len(p.forge.Issues); n != 2 {
				t.Errorf("%d were opened", n)
			}
		})
	}
	p := newProposing(10)
	p.follower.tracker.cfg.ExpireAfter = time.Hour
	p.after(t, 70*time.Minute, heldChange(7, "east"))
	p.forge.Pulls[0].State = forge.Open // by a person
	p.after(t, 2*time.Hour, heldChange(7, "east"))
	p.says(t, "east", "held: left as it is; offered as ")
	p.forge.End(1, forge.Closed)
	p.after(t, time.Minute, heldChange(7, "east"))
	p.says(t, "east", "put back: ")
}

// A hold that a user asks for keeps the object as it is, also after closing, and is recorded. Only a pull request or an issue
// can be held.
func TestHoldOnRequest(t *testing.T) {
	p := newProposing(10)
	hold := func(on bool) string {
		answer := p.handle(t.Context(), request{name: heldChange(7).hash, by: "anna", do: func(ctx context.Context, it heldItem, by string, now time.Time) (func() string, error) {
			return p.hold(ctx, it, by, on, now)
		}}, p.forge.Now)
		return fmt.Sprint(answer.text, answer.err)
	}
	p.after(t, time.Minute, heldChange(7, "east"))
	if got := hold(true); !strings.Contains(got, "it has no pull request or issue yet") || p.Follows() {
		t.Errorf("held before it is offered: %s", got)
	}
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	if got := hold(true); !strings.Contains(got, "has the label gitfleet/hold now") || !p.Follows() {
		t.Error(got)
	}
	if got := hold(true); !strings.Contains(got, "has the label gitfleet/hold already") {
		t.Error(got)
	}
	p.forge.End(1, forge.Closed)
	p.after(t, time.Minute, heldChange(7, "east"))
	p.says(t, "east", "held: left as it is; https://git.example.com/pulls/1 has the label gitfleet/hold")
	if got := hold(false); !strings.Contains(got, "does not have the label gitfleet/hold any more") {
		t.Error(got)
	}
	p.says(t, "east", "put back: ")
	var events []history.Event
	for _, e := range p.entries {
		if e.By == "anna" && e.Kind == history.Action {
			events = append(events, e.Event)
		}
	}
	if !slices.Equal(events, []history.Event{history.ProposalHeld, history.ProposalReleased}) {
		t.Errorf("recorded: %v", events)
	}
	p.forge.fail = errors.New("down")
	if got := hold(true); !strings.Contains(got, "down") {
		t.Error(got)
	}
}

// A command may be executed twice, since its answer may be lost. It does nothing then, also if the change was made again in
// the meantime and is offered by another pull request.
func TestRepeatedRequestsDoNothing(t *testing.T) {
	p := newProposing(10)
	repeat := func(number int64) error {
		return p.handle(t.Context(), request{do: p.Proposer.close, name: heldChange(7).hash, by: "anna", number: number}, p.forge.Now).err
	}
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	if err := repeat(1); err != nil {
		t.Fatal(err)
	}
	p.says(t, "east", "put back: ")
	if err := repeat(1); err == nil || !strings.Contains(err.Error(), "there is nothing to close") {
		t.Errorf("reverted twice: %v", err)
	}
	p.after(t, time.Minute)
	if err := repeat(1); err == nil {
		t.Error("reverted when it is gone")
	}
	p.after(t, time.Minute, heldChange(7, "east"))
	if _, err := p.open(t, heldChange(7).hash); err != nil {
		t.Fatal(err)
	}
	p.says(t, "east", "held: left as it is; offered as https://git.example.com/pulls/2")
	if err := repeat(1); err == nil || !strings.Contains(err.Error(), "this change is offered by https://git.example.com/pulls/2 now") {
		t.Errorf("a request on an earlier pull request: %v, %+v", err, p.follower.states[heldChange(7).hash])
	}
	var closed int
	for _, e := range p.entries {
		if e.Event == history.ProposalClosed && e.By == "anna" {
			closed++
		}
	}
	if closed != 1 {
		t.Errorf("%d closings are recorded", closed)
	}
}
