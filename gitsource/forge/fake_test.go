package forge_test

import (
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/test/fakeforge"
)

// The forge of other tests behaves like a real one.
func TestTheFakeForge(t *testing.T) {
	f := fakeforge.New()
	f.Readers = []string{"guest"}
	h := host{
		client: f, url: fakeforge.URL, step: func(string) {}, headRef: fakeforge.HeadRef, lineURL: "/%s/apps/a%%20b%%23%%281%%29.yaml#L3",
		commit: func(branch string) string {
			f.Heads[branch] = "head of " + branch
			return f.Heads[branch]
		},
		fork: func(branch string) (int64, string) {
			pr := forge.PullRequest{
				Thread: forge.Thread{Number: 2, URL: fakeforge.URL + "/pulls/2", Title: "from a fork", Body: "please", State: forge.Open, Opened: f.Now},
				Author: "guest", AuthorID: 2, Base: "main", Branch: branch, Fork: true, Head: "head of a fork", HeadRef: fakeforge.HeadRef(2),
			}
			f.Add(pr)
			return pr.Number, pr.Head
		},
		comment: func(number int64, body string) {
			f.Remarks = append(f.Remarks, forge.Remark{ID: 1, Number: number, Body: body, At: f.Now, Author: "guest", AuthorID: 2})
		},
		merge:    func(number int64) { f.End(number, forge.Merged) },
		label:    func(number int64, names ...string) { f.Pulls[number-1].Labels = names },
		issue:    func(forge.NewIssue) {}, // it has only those of the user of the token
		noIssues: func() { f.NoIssues = true },
		since:    f.Now.Add(-time.Hour), owner: forge.Remark{Author: fakeforge.User, AuthorID: fakeforge.UserID},
	}
	keepsContract(t, h)
	keepsIssueContract(t, h)
}
