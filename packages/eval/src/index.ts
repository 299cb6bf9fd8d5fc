export {
  type BootstrapOptions,
  bootstrapMean,
  type Interval,
  pairedBootstrap,
} from "./bootstrap.js";
export { passAtK } from "./pass-at-k.js";
