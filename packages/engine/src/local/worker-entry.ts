export function resolveWorkerEntry(): Promise<{ url: URL; options: object }> { return Promise.reject(new Error("x")); }
