/**
 * Trains a toy run and prints the digest of the weights, or kills itself with SIGKILL at a given event.
 * Arguments: run folder, number of steps, `<event type>:<step>` or `never`.
 */
import { trainToy } from "./toy-run.js";

const [runDir = "", steps = "0", killAt = "never"] = process.argv.slice(2);
const digest = await trainToy(runDir, Number(steps), ({ step, type }) => {
  if (`${type}:${step}` === killAt) process.kill(process.pid, "SIGKILL");
});
process.stdout.write(digest);
