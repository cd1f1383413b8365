package main

// auditPolicy has one event per request, when it has been answered, and one per
// watch, when it begins. What an API server asks itself is left out.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: None
  users: ["system:apiserver"]
- level: Metadata
  verbs: ["watch"]
  omitStages: ["RequestReceived", "ResponseComplete"]
- level: Metadata
  omitStages: ["RequestReceived", "ResponseStarted"]
`

func auditFlags(c *cluster) []string {
	return []string{
		"--audit-policy-file=" + c.file("audit.yaml"),
		"--audit-log-path=" + c.auditLog,
		// Written before the request is done with, so that a reader need not wait.
		"--audit-log-mode=blocking",
		"--audit-log-maxsize=0",
	}
}
