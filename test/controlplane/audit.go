package main

// auditPolicy logs one event for each request when it has been answered, and one for each watch
// when it begins. Requests of an API server to itself are omitted.
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
		// Events are logged before the request is finished, so that a reader need not wait.
		"--audit-log-mode=blocking",
		"--audit-log-maxsize=0",
	}
}
