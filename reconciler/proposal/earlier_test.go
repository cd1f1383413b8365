package proposal

import (
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// An earlier pull request or issue counts for a change unless gitfleet has closed it, or it was merged
// before the change was seen.
func TestWhatAnEarlierRequestDecides(t *testing.T) {
	seen := time.Unix(1_800_000_000, 0)
	for name, test := range map[string]struct {
		pr   thread
		over bool
	}{
		"open":                         {thread{Thread: forge.Thread{State: forge.Open}}, false},
		"merged before":                {thread{Thread: forge.Thread{State: forge.Merged, Ended: seen.Add(-time.Second)}}, true},
		"merged since":                 {thread{Thread: forge.Thread{State: forge.Merged, Ended: seen.Add(time.Second)}}, false},
		"closed by people long before": {thread{Thread: forge.Thread{State: forge.Closed, Ended: seen.Add(-1000 * time.Hour), Body: "text"}}, false},
		"closed by gitfleet":           {thread{Thread: forge.Thread{State: forge.Closed, Ended: seen.Add(time.Second), Body: markEnded("text")}}, true},
	} {
		if got := isOver(&test.pr, seen); got != test.over {
			t.Errorf("%s: over %v, want %v", name, got, test.over)
		}
	}
}

// Of several issues of a change, an open one counts most, then one that a person has closed, also if
// gitfleet has closed a newer one.
func TestWhichIssueOfAChangeCounts(t *testing.T) {
	body := marker("shop", manualChange(7).hash)
	rejected, over := forge.Thread{State: forge.Closed, Body: body}, forge.Thread{State: forge.Closed, Body: markEnded(body)}
	open := forge.Thread{State: forge.Open, Body: body}
	other := forge.Thread{State: forge.Open, Body: marker("other", manualChange(7).hash)}
	for name, test := range map[string]struct {
		issues []forge.Thread // the oldest first
		want   string
	}{
		"none":                        {nil, "held: left as it is; offered as https://git.example.com/issues/1; no edit"},
		"of another fleet":            {[]forge.Thread{other}, "held: left as it is; offered as https://git.example.com/issues/2; no edit"},
		"one that is over":            {[]forge.Thread{over}, "held: left as it is; offered as https://git.example.com/issues/2; no edit"},
		"rejected, then over":         {[]forge.Thread{rejected, over}, "put back: https://git.example.com/issues/1 was closed"},
		"over, then rejected":         {[]forge.Thread{over, rejected}, "put back: https://git.example.com/issues/2 was closed"},
		"open, then one that is over": {[]forge.Thread{open, over}, "held: left as it is; offered as https://git.example.com/issues/1; no edit"},
		"rejected, then open":         {[]forge.Thread{rejected, open}, "held: left as it is; offered as https://git.example.com/issues/2; no edit"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProposing(10)
			for i := range test.issues {
				test.issues[i].Kind, test.issues[i].Number, test.issues[i].Labels = forge.KindIssue, int64(i+1), []string{issueLabel}
				test.issues[i].URL = "https://git.example.com/issues/" + string(rune('1'+i))
				p.forge.Issues = append(p.forge.Issues, &test.issues[i])
			}
			p.after(t, 3*time.Minute, manualChange(7, "east"))
			p.says(t, "east", test.want)
		})
	}
}
