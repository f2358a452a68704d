package certs

// canary must never show up in anything that leaves the process.
const canary = "s3cr3t-canary"
