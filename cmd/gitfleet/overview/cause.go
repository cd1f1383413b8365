package overview

import "strings"

// KubeFleet's messages wrap the error of an object in sentences that add nothing. They would
// fill the three lines that a terminal has for a reason.
const (
	notAppliedBegins = "Failed to apply the manifest (error: "
	notAppliedEnds   = ")"

	notAvailableBegins = "Manifest is not yet available; Fleet will check again later ("
	notAvailableEnds   = ")"
)

var wrappings = []string{
	"failed to apply the manifest: ",
	"failed to apply the manifest object: ",
	"failed to create manifest object: ",
	"failed to decode manifest: ",
	"failed to find GVR from member cluster client REST mapping: ",
	"an error is returned by the API server: ",
	"error returned by the API server: ",
	"failed to take over a pre-existing object: ",
	"the object is already owned by another Fleet AppliedWork object: ",
}

// Cause returns the essential part of an object's message, without KubeFleet's wrapping: the
// error if the object is not applied, or what it waits for if it is not available. Other
// messages are returned unchanged.
func Cause(message string) string {
	if missing, wrapped := strings.CutPrefix(message, notAvailableBegins); wrapped {
		return strings.TrimSuffix(missing, notAvailableEnds)
	}
	text, wrapped := strings.CutPrefix(message, notAppliedBegins)
	if !wrapped {
		return message
	}
	text = strings.TrimSuffix(text, notAppliedEnds)
	for again := true; again; {
		again = false
		for _, w := range wrappings {
			rest, found := strings.CutPrefix(text, w)
			if found && rest != "" {
				text, again = rest, true
			}
		}
	}
	return text
}

// withoutWrapping returns a text that ends with the message of an object, without KubeFleet's
// wrapping of that message.
func withoutWrapping(text string) string {
	for _, begins := range []string{notAppliedBegins, notAvailableBegins} {
		if i := strings.Index(text, begins); i >= 0 {
			return text[:i] + Cause(text[i:])
		}
	}
	return text
}
