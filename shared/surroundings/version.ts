// Written from package.json by npm run contract.
export const VERSION = '0.2.0';
