package api

import "testing"

// A message has the cause in it, in KubeFleet's words. A sentence that this version does not know leaves the cause.
func TestMessagesOfCauses(t *testing.T) {
	for s := range sentences {
		if got := s.Message("CAUSE"); got != sentences[s].before+"CAUSE)" {
			t.Errorf("%s: %s", s, got)
		}
	}
	for _, test := range []struct {
		in          Sentence
		cause, want string
	}{
		{"", "the cluster is unreachable", "the cluster is unreachable"},
		{"a newer one", "no", "no"},
		{SaysCreateRefused, "forbidden", "Failed to apply the manifest (error: failed to apply the manifest: failed to create manifest object: error returned by the API server: forbidden)"},
		{SaysNotAvailable, "", "Manifest is not yet available; Fleet will check again later"},
		{SaysNotAvailable, "0 of 1 replicas", "Manifest is not yet available; Fleet will check again later (0 of 1 replicas)"},
	} {
		if got := test.in.Message(test.cause); got != test.want {
			t.Errorf("%s: %s", test.in, got)
		}
	}
}
