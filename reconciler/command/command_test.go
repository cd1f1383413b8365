package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/reconciler/approval"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A world is a forge with two pull requests, one of drift and one of a person, and what commands can do.
type world struct {
	remarks []forge.Remark
	answers []string
	did     []string
	entries []history.Entry
	lists   int
	// lose is the number of next answers that are lost.
	lose int
	// fail is returned by ListRemarks, and refuse by Hold and Revert.
	fail, refuse error
	// hidden is the error of MayWrite.
	hidden error
	idle   bool
}

const drift = "0123456789abcdef"

func (w *world) ListRemarks(_ context.Context, since time.Time) ([]forge.Remark, error) {
	w.lists++
	var out []forge.Remark
	for _, r := range w.remarks {
		if !r.At.Before(since) {
			out = append(out, r)
		}
	}
	return out, w.fail
}

func (w *world) MayWrite(_ context.Context, r forge.Remark) (bool, error) {
	return r.Author == "anna" && w.hidden == nil, w.hidden
}

func (w *world) PullRequest(_ context.Context, number int64) (forge.PullRequest, error) {
	pr := forge.PullRequest{Thread: forge.Thread{Number: number, URL: fmt.Sprint("https://git.example.com/pulls/", number), State: forge.Open}, Base: "main"}
	switch number {
	case 1:
		pr.Branch, pr.Body = "gitfleet/drift/"+drift, "<!-- gitfleet: shop "+drift+" -->"
	case 2:
		pr.Branch = "feature"
	case 3:
		pr.Branch, pr.Base = "feature", "other"
	case 4:
		pr.Branch, pr.Body = "gitfleet/drift/"+drift, "<!-- gitfleet: another-fleet "+drift+" -->"
	case 7:
		pr.Branch, pr.State = "feature", forge.Merged
	case 6:
		pr.Branch, pr.Body, pr.State = "gitfleet/drift/"+drift, "<!-- gitfleet: shop "+drift+" -->", forge.Closed
	case 5:
		pr.Branch, pr.Fork = "gitfleet/drift/"+drift, true
		pr.Body = "<!-- gitfleet: shop " + drift + " -->"
	}
	return pr, nil
}

func (w *world) FindComment(_ context.Context, number int64, marker string) (*forge.Comment, error) {
	if slices.ContainsFunc(w.answers, func(a string) bool {
		return strings.HasPrefix(a, fmt.Sprint(number, ":")) && strings.Contains(a, marker)
	}) {
		return &forge.Comment{}, nil
	}
	return nil, nil
}

func (w *world) AddComment(_ context.Context, number int64, body string) (forge.Comment, error) {
	if w.lose > 0 {
		w.lose--
		return forge.Comment{}, errors.New("the forge has closed the connection")
	}
	w.answers = append(w.answers, fmt.Sprintf("%d: %s", number, body))
	return forge.Comment{}, nil
}

func (w *world) Follows() bool { return !w.idle }

func (w *world) Hold(_ context.Context, name string, _ int64, by string, on bool) (string, error) {
	w.did = append(w.did, fmt.Sprintf("hold %s %t by %s", name, on, by))
	return "it is so", w.refuse
}

func (w *world) Revert(_ context.Context, name string, _ int64, by string) (string, error) {
	w.did = append(w.did, fmt.Sprintf("close %s by %s", name, by))
	return "it is closed", w.refuse
}

func (w *world) PlanAgain(number int64) bool {
	w.did = append(w.did, fmt.Sprint("plan ", number))
	return number == 2
}

func (w *world) Comment(_ context.Context, pr forge.PullRequest, author forge.Remark, by, args string) (string, error) {
	w.did = append(w.did, fmt.Sprintf("approve %s on %d %s by %s", args, pr.Number, author.Author, by))
	if w.refuse != nil {
		return "", w.refuse
	}
	return "it is approved", nil
}

func (w *world) commander() *Commander {
	return New(Config{
		Forge: w, Proposals: w, Plans: w, Runs: w, Fleet: "shop", Base: "main", Interval: 30 * time.Second, Log: slog.New(slog.DiscardHandler),
		Record: func(all ...history.Entry) { w.entries = append(w.entries, all...) },
	})
}

// say adds a comment.
func (w *world) say(number int64, author, body string) {
	w.remarks = append(w.remarks, forge.Remark{ID: int64(len(w.remarks) + 1), Number: number, Author: author, Body: body, At: noon})
}

// A command is executed for a user who may write to the repository, on pull requests that it is for, and answered.
func TestCommands(t *testing.T) {
	const by = " by anna (https://git.example.com/pulls/1)"
	tests := map[string]struct {
		number      int64
		author      string
		body        string
		did, answer string
	}{
		"hold":                         {1, "anna", "/gitfleet hold\nuntil Monday", "hold " + drift + " true" + by, "it is so"},
		"unhold":                       {1, "anna", "  /gitfleet  unhold", "hold " + drift + " false" + by, "it is so"},
		"revert":                       {1, "anna", "/gitfleet revert", "close " + drift + by, "it is closed"},
		"plan":                         {2, "anna", "/gitfleet plan", "plan 2", "It is planned again."},
		"plan of what is not planned":  {1, "anna", "/gitfleet plan", "plan 1", "Nothing was done: this pull request is not planned."},
		"help":                         {2, "anna", "/gitfleet help", "", "- `/gitfleet plan`"},
		"nothing":                      {1, "anna", "/gitfleet", "", "There is no command `/gitfleet `"},
		"unknown":                      {1, "anna", "/gitfleet merge `@all`", "", "There is no command `` /gitfleet merge `@all` ``"},
		"hold of a person's":           {2, "anna", "/gitfleet hold", "", "`/gitfleet hold` is only for pull requests of drift."},
		"of somebody who may not":      {1, "guest", "/gitfleet revert", "", ""},
		"later in a comment":           {1, "anna", "please /gitfleet revert", "", ""},
		"quoted":                       {1, "anna", "> /gitfleet revert", "", ""},
		"another word":                 {1, "anna", "/gitfleets revert", "", ""},
		"to another base":              {3, "anna", "/gitfleet plan", "", ""},
		"of another fleet":             {4, "anna", "/gitfleet revert", "", ""},
		"revert of a closed one":       {6, "anna", "/gitfleet revert", "", ""},
		"hold of a closed one":         {6, "anna", "/gitfleet hold", "", ""},
		"unhold of a closed one":       {6, "anna", "/gitfleet unhold", "hold " + drift + " false by anna (https://git.example.com/pulls/6)", "it is so"},
		"approval":                     {7, "anna", "/gitfleet approve --stage canary", "approve --stage canary on 7 anna by anna (https://git.example.com/pulls/7)", "it is approved"},
		"approval by somebody else":    {7, "guest", "/gitfleet approve --stage canary", "", ""},
		"plan of a merged one":         {7, "anna", "/gitfleet plan", "", ""},
		"of a fork that looks like it": {5, "anna", "/gitfleet revert", "", "is only for pull requests of drift"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := &world{}
			w.say(test.number, test.author, test.body)
			c := w.commander()
			for n := range 3 { // once, also later and after a restart
				c.pass(t.Context(), noon.Add(time.Duration(n)*time.Minute))
			}
			w.commander().pass(t.Context(), noon.Add(5*time.Minute))
			if got := strings.Join(w.did, "; "); got != test.did {
				t.Errorf("it did %q, want %q", got, test.did)
			}
			switch got := strings.Join(w.answers, "; "); {
			case test.answer == "" && got != "":
				t.Errorf("answered: %q", got)
			case !strings.Contains(got, test.answer) || len(w.answers) > 1:
				t.Errorf("the answers are %q, want one with %q", got, test.answer)
			}
		})
	}
}

// What a command did is recorded with who said it.
func TestPlansAreRecorded(t *testing.T) {
	w := &world{}
	w.say(2, "anna", "/gitfleet plan")
	w.commander().pass(t.Context(), noon)
	want := history.Entry{Kind: history.Action, Event: history.PlanRequested, By: "anna (https://git.example.com/pulls/2)", Message: "https://git.example.com/pulls/2"}
	if len(w.entries) != 1 || w.entries[0] != want {
		t.Errorf("recorded: %+v", w.entries)
	}
}

// A refusal is an answer. An error of the forge is none: the command is tried again, and given up after a few times, so that
// it does not stop others.
func TestFailuresOfCommands(t *testing.T) {
	w := &world{refuse: &proposal.RefusedError{}}
	w.say(1, "anna", "/gitfleet revert")
	w.commander().pass(t.Context(), noon)
	if len(w.answers) != 1 || !strings.Contains(w.answers[0], "Nothing was done: ") {
		t.Errorf("answered: %q", w.answers)
	}
	w = &world{refuse: &approval.RefusedError{Why: "stage canary is finished"}}
	w.say(7, "anna", "/gitfleet approve --stage canary")
	w.commander().pass(t.Context(), noon)
	if len(w.answers) != 1 || !strings.Contains(w.answers[0], "Nothing was done: `stage canary is finished`") {
		t.Errorf("answered: %q", w.answers)
	}
	w = &world{refuse: errors.New("the forge has closed the connection")}
	w.say(1, "anna", "/gitfleet revert")
	w.say(1, "anna", "/gitfleet unhold")
	w.say(2, "anna", "/gitfleet plan")
	c := w.commander()
	c.pass(t.Context(), noon)
	if len(w.answers) != 1 || !strings.HasPrefix(w.answers[0], "2: It is planned again.") || len(w.did) != 2 {
		t.Errorf("answered at once: %q, did %q", w.answers, w.did)
	}
	for n := range 40 {
		c.pass(t.Context(), noon.Add(time.Duration(n)*time.Minute))
	}
	if len(w.answers) != 3 || !strings.HasPrefix(w.answers[1], "1: Nothing was done, also after several attempts: `the forge has closed the connection`") || len(w.did) != 1+2*maxAttempts {
		t.Errorf("answered: %q, did %q", w.answers, w.did)
	}
}

// What is refused for now is tried again, and no answer until it was refused for long. An error that every request meets is
// none of the command.
func TestWhatIsRefusedForNowIsTriedAgain(t *testing.T) {
	for name, err := range map[string]error{"refused for now": &proposal.RefusedError{Temporary: true}, "a forge that is down": fmt.Errorf("x: %w", &forge.StatusError{Status: 503})} {
		w := &world{refuse: err}
		w.say(1, "anna", "/gitfleet revert")
		c := w.commander()
		for n := range 25 {
			c.pass(t.Context(), noon.Add(time.Duration(n)*time.Minute))
		}
		if len(w.answers) > 0 {
			t.Errorf("%s: answered %q", name, w.answers)
		}
		w.refuse = nil
		c.pass(t.Context(), noon.Add(40*time.Minute))
		if len(w.answers) != 1 || !strings.HasPrefix(w.answers[0], "1: it is closed") {
			t.Errorf("%s: then answered %q", name, w.answers)
		}
	}
	w := &world{refuse: &proposal.RefusedError{Temporary: true}}
	w.say(1, "anna", "/gitfleet revert")
	c := w.commander()
	for n := range 59 {
		c.pass(t.Context(), noon.Add(time.Duration(n)*time.Minute))
	}
	if len(w.answers) != 1 || !strings.HasPrefix(w.answers[0], "1: Nothing was done, ") {
		t.Errorf("answered in the end: %q", w.answers)
	}
}

// If the token may not ask who may write to the repository, no command is executed, and each pull request says so once.
func TestHiddenPermissions(t *testing.T) {
	w := &world{hidden: fmt.Errorf("ask: %w", forge.ErrPermissionsHidden)}
	for range 3 {
		w.say(1, "anna", "/gitfleet hold")
		w.say(2, "guest", "/gitfleet plan")
	}
	w.commander().pass(t.Context(), noon)
	w.commander().pass(t.Context(), noon.Add(time.Minute))
	if len(w.did) > 0 || len(w.answers) != 2 || !strings.Contains(w.answers[0], "may not ask who may write") {
		t.Errorf("it did %q, and answered %q", w.did, w.answers)
	}
}

// A command whose answer is lost is executed again, and answered once.
func TestLostAnswers(t *testing.T) {
	w := &world{lose: 1}
	w.say(1, "anna", "/gitfleet hold")
	w.commander().pass(t.Context(), noon)
	w.commander().pass(t.Context(), noon.Add(time.Minute)) // after a restart
	w.commander().pass(t.Context(), noon.Add(2*time.Minute))
	if len(w.did) != 2 || len(w.answers) != 1 {
		t.Errorf("it did %q, and answered %q", w.did, w.answers)
	}
}

// No request is sent while there is no pull request to follow. Old commands are not executed.
func TestNothingIsReadInVain(t *testing.T) {
	w := &world{idle: true}
	w.say(1, "anna", "/gitfleet revert")
	c := w.commander()
	c.pass(t.Context(), noon)
	if w.lists > 0 {
		t.Error("comments were listed")
	}
	w.idle = false
	c.pass(t.Context(), noon.Add(2*time.Hour))
	if w.lists != 1 || len(w.did) > 0 {
		t.Errorf("%d lists; it did %q", w.lists, w.did)
	}
}
